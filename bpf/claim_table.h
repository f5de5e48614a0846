/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * The table of claims of a program, which user space fills in (src/device/claim_table.hpp), and the question that a
 * program asks it. An exact claim outranks a wildcard. To be included once in a program. */
#ifndef NETCHANNEL_CLAIM_TABLE_H
#define NETCHANNEL_CLAIM_TABLE_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "claims.h"

/* How many claims name their peer. While there are none, as on a plain UDP server, one look-up does. */
__u32 exact_claims = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct netchannel_claim);
	__type(value, __u32);
} claims SEC(".maps");

/* `claim` is the frame's exact one; it is changed. */
static __always_inline int is_claimed(struct netchannel_claim *claim)
{
	if (exact_claims != 0 && bpf_map_lookup_elem(&claims, claim))
		return 1;
	__builtin_memset(claim->peer, 0, sizeof(claim->peer));
	claim->peer_port = 0;
	return bpf_map_lookup_elem(&claims, claim) != 0;
}

#endif
