/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * What a claim looks like in a BPF map: the layout that the programs in this folder and user space agree on. A flow
 * is named from the receiver's side, as in netchannel/flow.hpp. IPv4 addresses stand as ::ffff:a.b.c.d, ports in
 * network order. A peer of all zeroes is a wildcard: every peer that no exact claim names. Every byte takes part in
 * the comparison, so the padding is named and must be zero. */
#ifndef NETCHANNEL_CLAIMS_H
#define NETCHANNEL_CLAIMS_H

#include <linux/types.h>

struct netchannel_claim {
	__u8 local[16];
	__u8 peer[16];
	__be16 local_port;
	__be16 peer_port;
	__u8 protocol; /* IPPROTO_UDP or IPPROTO_TCP */
	__u8 zero[3];
};

#endif
