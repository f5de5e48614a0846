// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The XDP program: which frames of an interface are ours. A frame of a claimed flow goes to the AF_XDP socket of the
// queue that it came in on; everything else passes to the kernel, and so does a claimed frame if that queue has no
// socket (ours has died a moment ago). The program is loaded with frags support, so that it can stand on an
// interface of any MTU; what names a flow must be in the linear part, else it passes.
#include "claim_table.h"
#include "classify.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The interface's own address, in two words as they lie in a frame. Frames to others, and all multicast, pass. */
const volatile __u32 mac_first = 0;
const volatile __u16 mac_last = 0;

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} xsks SEC(".maps");

SEC("xdp.frags")
int netchannel_xdp(struct xdp_md *context)
{
	void *data = (void *)(long)context->data;
	void *end = (void *)(long)context->data_end;
	struct ethhdr *eth = data;
	struct netchannel_claim claim = {};

	if ((void *)(eth + 1) > end)
		return XDP_PASS;
	if (*(__u32 *)data != mac_first || *(__u16 *)(data + 4) != mac_last)
		return XDP_PASS;
	if (classify(eth, end, &claim) != 0 || !is_claimed(&claim))
		return XDP_PASS;
	return bpf_redirect_map(&xsks, context->rx_queue_index, XDP_PASS);
}
