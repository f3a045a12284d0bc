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

/* The head of an info's page: a tail has the head's address, or a mask that
 * leads there. */
static always_inline u64 head_by_info(u64 at, u64 info)
{
	if (!(info & 1))
		return at;
	if ((s64)info > -(1ll << 40))
		return at & info & ~1ull;
	return info - 1;
}

static noinline u64 head_of_info(u64 at)
{
	struct page___info *page = (void *)at;
	u64 info = 0;

	return READ(&info, page->compound_info) ? 0 : head_by_info(at, info);
}

static noinline u64 head_of(u64 at)
{
	struct page *page = (void *)at;
	u64 head = 0;

	if (READ(&head, page->compound_head))
		return 0;
	return head & 1 ? head - 1 : at;
}

static always_inline u64 cache_of_slab(u64 at)
{
	struct slab *slab = (void *)at;
	u64 cache = 0;

	if (at)
		READ(&cache, slab->slab_cache);
	return cache;
}

/* Where a slab has its cache, a tail has its head: in most kernels the word of
 * both, so that one read is enough. */
static noinline u64 cache_of_info(u64 at)
{
	struct page___info *page = (void *)at;
	struct slab *slab = 0;
	u64 info = 0;

	if (READ(&info, page->compound_info))
		return 0;
	if (!(info & 1) && OFFSET(page->compound_info) == OFFSET(slab->slab_cache))
		return info;
	return cache_of_slab(head_by_info(at, info));
}

static noinline u64 cache_of_head(u64 at)
{
	struct page *page = (void *)at;
	struct slab *slab = 0;
	u64 head = 0;

	if (READ(&head, page->compound_head))
		return 0;
	if (!(head & 1) && OFFSET(page->compound_head) == OFFSET(slab->slab_cache))
		return head;
	return cache_of_slab(head & 1 ? head - 1 : at);
}

/* The descriptor of the page that holds an object. */
static always_inline u64 page_of(u64 object)
{
	return page_key + (object >> page_shift) * page_descriptor;
}

/* The descriptor of the slab that a page is of. */
static always_inline u64 slab_of_page(u64 at)
{
	struct page___info *info = 0;

	return HAS(info->compound_info) ? head_of_info(at) : head_of(at);
}

/* The cache that an object is of; 0: not known. */
static always_inline u64 cache_of(u64 object)
{
	struct page___info *info = 0;

	if (!page_key)
		return 0;
	u64 at = page_of(object);
	return HAS(info->compound_info) ? cache_of_info(at) : cache_of_head(at);
}

#endif
