// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The two tc programs of the bulk lane, each at an ingress hook (tcx). At the interface: a frame of a claimed flow
// goes to our TAP, whole, as the driver or GRO made it, so that it may be a super-frame; everything else goes on to
// the next program and the kernel. At the TAP: what we have written goes out of the interface, through its queueing
// discipline. Its Ethernet header is finished, since the stack mirrors the kernel's neighbours; asking the kernel for
// route and neighbour again (bpf_redirect_neigh) would cost a look-up for each frame and overrule the stack.
#include <linux/if_packet.h>

#include "claim_table.h"
#include "classify.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Linux 6.6: not decided here; the next program at the hook is asked, then the kernel has it. */
#define TCX_NEXT -1

/* Enough to name nearly every flow, that of an ICMP error's quote behind two headers with options included. */
#define NETCHANNEL_LINEAR 192

const volatile __u32 tap_index = 0;
const volatile __u32 interface_index = 0;

/* Returns 0 if the linear part names the frame's flow. */
static __noinline int find_flow(struct __sk_buff *skb, struct netchannel_claim *claim)
{
	struct ethhdr *eth = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;

	if ((void *)(eth + 1) > end)
		return -1;
	return classify(eth, end, claim);
}

SEC("tc")
int netchannel_in(struct __sk_buff *skb)
{
	struct netchannel_claim claim = {};
	__u32 linear = skb->data_end - skb->data;
	__u32 wanted = skb->len < NETCHANNEL_LINEAR ? skb->len : NETCHANNEL_LINEAR;

	/* Not by its address, which may change: the kernel has compared it. A tag may stand beside the frame. */
	if (skb->pkt_type != PACKET_HOST || skb->vlan_present)
		return TCX_NEXT;
	if (find_flow(skb, &claim) != 0) {
		/* Drivers put as much as they like into the linear part, of an ICMP error often not its quote. */
		if (linear >= wanted || bpf_skb_pull_data(skb, wanted) != 0 || find_flow(skb, &claim) != 0)
			return TCX_NEXT;
	}
	return is_claimed(&claim) ? bpf_redirect(tap_index, 0) : TCX_NEXT;
}

SEC("tc")
int netchannel_out(struct __sk_buff *skb)
{
	(void)skb;
	return bpf_redirect(interface_index, 0);
}
