/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Finds the flow of an Ethernet frame, as a claim key, for any BPF program that sees the frame's bytes. It looks at
 * no more than names a flow: lengths, checksums and sanity are the stack's business. What it cannot name for sure is
 * the kernel's: fragments (the kernel puts them together), VLAN tags, headers outside the linear part.
 *
 *   UDP, TCP         local = destination, peer = source
 *   ICMP(v6) error   the flow that the quoted packet belongs to: local = quoted source, peer = quoted destination */
#ifndef NETCHANNEL_CLASSIFY_H
#define NETCHANNEL_CLASSIFY_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "claims.h"

/* Hop-by-hop, routing, authentication and destination options, in any order; a longer row is the kernel's. */
#define NETCHANNEL_MAX_EXTENSIONS 6

/* ICMP (RFC 792) and ICMPv6 (RFC 4443) errors: eight bytes, then the packet that caused the error. */
struct netchannel_icmp {
	__u8 type;
	__u8 rest[7];
};

enum {
	V4_UNREACHABLE = 3,
	V4_TIME_EXCEEDED = 11,
	V4_PARAMETER_PROBLEM = 12,
	V6_UNREACHABLE = 1,
	V6_PARAMETER_PROBLEM = 4, /* packet too big and time exceeded stand between */
};

struct netchannel_ports {
	__be16 source;
	__be16 destination;
};

struct netchannel_extension {
	__u8 next;
	__u8 length;
};

static __always_inline void put_v4(__u8 *to, __be32 address)
{
	__builtin_memset(to, 0, 10);
	to[10] = 0xff;
	to[11] = 0xff;
	__builtin_memcpy(to + 12, &address, 4);
}

static __always_inline int is_v4_error(__u8 type)
{
	return type == V4_UNREACHABLE || type == V4_TIME_EXCEEDED || type == V4_PARAMETER_PROBLEM;
}

static __always_inline int is_v6_error(__u8 type)
{
	return type >= V6_UNREACHABLE && type <= V6_PARAMETER_PROBLEM;
}

/* Walks the extension headers from *at, which it moves to the transport header. Returns the transport protocol, or
 * -1 if it is a fragment or cannot be told. */
static __always_inline int skip_extensions(__u8 next, void **at, void *end)
{
#pragma unroll
	for (int i = 0; i < NETCHANNEL_MAX_EXTENSIONS; i++) {
		struct netchannel_extension *header = *at;

		if (next == IPPROTO_FRAGMENT)
			return -1;
		if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS && next != IPPROTO_AH)
			return next;
		if ((void *)(header + 1) > end)
			return -1;
		/* RFC 4302 section 2.2 counts in units of four, all others (RFC 8200 section 4) of eight. */
		*at += next == IPPROTO_AH ? (header->length + 2) * 4 : (header->length + 1) * 8;
		next = header->next;
	}
	return -1;
}

/* The quoted packet was ours: its source is our side. Returns 0 if the claim is filled in. */
static __always_inline int classify_quoted_v4(void *at, void *end, __be32 receiver, struct netchannel_claim *claim)
{
	struct iphdr *ip = at;
	struct netchannel_ports *ports;

	if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl < 5)
		return -1;
	if (ip->saddr != receiver || (ip->frag_off & bpf_htons(0x1fff)))
		return -1;
	if (ip->protocol != IPPROTO_UDP && ip->protocol != IPPROTO_TCP)
		return -1;
	ports = at + ip->ihl * 4;
	if ((void *)(ports + 1) > end)
		return -1;
	claim->protocol = ip->protocol;
	put_v4(claim->local, ip->saddr);
	put_v4(claim->peer, ip->daddr);
	claim->local_port = ports->source;
	claim->peer_port = ports->destination;
	return 0;
}

static __always_inline int same_address(const struct in6_addr *a, const struct in6_addr *b)
{
	return a->in6_u.u6_addr32[0] == b->in6_u.u6_addr32[0] && a->in6_u.u6_addr32[1] == b->in6_u.u6_addr32[1] &&
	       a->in6_u.u6_addr32[2] == b->in6_u.u6_addr32[2] && a->in6_u.u6_addr32[3] == b->in6_u.u6_addr32[3];
}

static __always_inline int classify_quoted_v6(void *at, void *end, const struct in6_addr *receiver,
					      struct netchannel_claim *claim)
{
	struct ipv6hdr *ip = at;
	struct netchannel_ports *ports;
	int protocol;

	if ((void *)(ip + 1) > end || ip->version != 6 || !same_address(&ip->saddr, receiver))
		return -1;
	at = ip + 1;
	protocol = skip_extensions(ip->nexthdr, &at, end);
	if (protocol != IPPROTO_UDP && protocol != IPPROTO_TCP)
		return -1;
	ports = at;
	if ((void *)(ports + 1) > end)
		return -1;
	claim->protocol = protocol;
	__builtin_memcpy(claim->local, &ip->saddr, 16);
	__builtin_memcpy(claim->peer, &ip->daddr, 16);
	claim->local_port = ports->source;
	claim->peer_port = ports->destination;
	return 0;
}

static __always_inline int classify_v4(void *at, void *end, struct netchannel_claim *claim)
{
	struct iphdr *ip = at;
	struct netchannel_ports *ports;
	struct netchannel_icmp *icmp;

	if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl < 5)
		return -1;
	/* More fragments, or an offset: no part of a fragmented packet is ours. */
	if (ip->frag_off & bpf_htons(0x3fff))
		return -1;
	at += ip->ihl * 4;
	if (ip->protocol == IPPROTO_ICMP) {
		icmp = at;
		if ((void *)(icmp + 1) > end || !is_v4_error(icmp->type))
			return -1;
		return classify_quoted_v4(icmp + 1, end, ip->daddr, claim);
	}
	if (ip->protocol != IPPROTO_UDP && ip->protocol != IPPROTO_TCP)
		return -1;
	ports = at;
	if ((void *)(ports + 1) > end)
		return -1;
	claim->protocol = ip->protocol;
	put_v4(claim->local, ip->daddr);
	put_v4(claim->peer, ip->saddr);
	claim->local_port = ports->destination;
	claim->peer_port = ports->source;
	return 0;
}

static __always_inline int classify_v6(void *at, void *end, struct netchannel_claim *claim)
{
	struct ipv6hdr *ip = at;
	struct netchannel_ports *ports;
	struct netchannel_icmp *icmp;
	int protocol;

	if ((void *)(ip + 1) > end || ip->version != 6)
		return -1;
	at = ip + 1;
	protocol = skip_extensions(ip->nexthdr, &at, end);
	if (protocol == IPPROTO_ICMPV6) {
		icmp = at;
		if ((void *)(icmp + 1) > end || !is_v6_error(icmp->type))
			return -1;
		return classify_quoted_v6(icmp + 1, end, &ip->daddr, claim);
	}
	if (protocol != IPPROTO_UDP && protocol != IPPROTO_TCP)
		return -1;
	ports = at;
	if ((void *)(ports + 1) > end)
		return -1;
	claim->protocol = protocol;
	__builtin_memcpy(claim->local, &ip->daddr, 16);
	__builtin_memcpy(claim->peer, &ip->saddr, 16);
	claim->local_port = ports->destination;
	claim->peer_port = ports->source;
	return 0;
}

/* Returns 0 and fills in the exact claim of the frame's flow (which the caller has zeroed), or -1: the kernel's. */
static __always_inline int classify(struct ethhdr *eth, void *end, struct netchannel_claim *claim)
{
	if (eth->h_proto == bpf_htons(ETH_P_IP))
		return classify_v4(eth + 1, end, claim);
	if (eth->h_proto == bpf_htons(ETH_P_IPV6))
		return classify_v6(eth + 1, end, claim);
	return -1;
}

#endif
