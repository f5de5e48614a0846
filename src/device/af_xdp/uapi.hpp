// What the kernel understands and the headers of Debian 12 (Linux 6.1) do not name yet, in this one place.
// Each value is part of the kernel's stable interface; a kernel that lacks the feature refuses it and we fall
// back.
#pragma once

#include <linux/if_xdp.h>
#include <sys/socket.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

// Linux 6.6: packets of several descriptors.
#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)  // sockaddr_xdp::sxdp_flags
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)  // xdp_desc::options: the packet goes on in the next descriptor
#endif

// Linux 6.17: how many frames one sendto() may send in copy mode, 32 unless set.
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9
#endif

// Linux 5.11.
#ifndef SO_PREFER_BUSY_POLL
#define SO_PREFER_BUSY_POLL 69
#endif
#ifndef SO_BUSY_POLL_BUDGET
#define SO_BUSY_POLL_BUDGET 70
#endif
