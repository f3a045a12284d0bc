/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which slab and which cache an object is in, from its address alone.
 *
 * The descriptor of the page that holds address A is at
 * page_key + A / page size * size of a descriptor. The loader learns the key
 * from pairs of a partial slab and a free object in it, so that no symbol and no
 * constant of the machine is needed; without it, 0 is the answer.
 *
 * Source of truth: mm/slab.h and include/linux/page-flags.h, Linux 6.1 to 7.3.
 */
#ifndef SLABCTL_OBJECTS_H
#define SLABCTL_OBJECTS_H

const volatile u64 page_key = 0;
const volatile u64 page_descriptor = 64;
const volatile u32 page_shift = 12;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct page {
	u64 compound_head;	/* to 6.19 or so */
};
struct page___info {
	u64 compound_info;	/* from 7.0 or so */
};
#pragma clang attribute pop

static noinline u64 head_of_info(u64 at)
{
	struct page___info *page = (void *)at;
	u64 info = 0;

	if (READ(&info, page->compound_info))
		return 0;
	if (!(info & 1))
		return at;
	/* A tail has the head's address, or a mask that leads there. */
	if ((s64)info > -(1ll << 40))
		return at & info & ~1ull;
	return info - 1;
}

static noinline u64 head_of(u64 at)
{
	struct page *page = (void *)at;
	u64 head = 0;

	if (READ(&head, page->compound_head))
		return 0;
	return head & 1 ? head - 1 : at;
}

/* The descriptor of the slab that would hold the object; 0: not known. */
static always_inline u64 slab_of(u64 object)
{
	struct page___info *info = 0;

	if (!page_key)
		return 0;
	u64 at = page_key + (object >> page_shift) * page_descriptor;
	return HAS(info->compound_info) ? head_of_info(at) : head_of(at);
}

static always_inline u64 cache_of_slab(u64 at)
{
	struct slab *slab = (void *)at;
	u64 cache = 0;

	if (at)
		READ(&cache, slab->slab_cache);
	return cache;
}

#endif
