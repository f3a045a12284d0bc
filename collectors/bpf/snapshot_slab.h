/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One slab: whose it is, what is in use, and the next on its list.
 */
#ifndef SLABCTL_SNAPSHOT_SLAB_H
#define SLABCTL_SNAPSHOT_SLAB_H

struct slab_view {
	u64 cache, next, previous, freelist, inuse, objects;
};

/* One read: there are thousands of slabs. */
static always_inline int look_at_slab(u64 at, struct slab_view *view)
{
	u64 words[5];
	char *base = (char *)words;
	struct slab *slab = (void *)at;
	u64 cache = OFFSET(slab->slab_cache), list = OFFSET(slab->slab_list);
	u64 freelist = OFFSET(slab->freelist), unit = OFFSET(slab->inuse);
	/* These five words are side by side in all kernels, behind the flags. */
	u64 first = cache < list ? cache : list;

	cache -= first, list -= first, freelist -= first, unit -= first;
	if (cache > 32 || list > 24 || freelist > 32 || unit > 36)
		return 1;
	if (bpf_probe_read_kernel(words, sizeof(words), (void *)(at + first)))
		return 1;
	view->cache = *(u64 *)(base + cache);
	view->next = *(u64 *)(base + list);
	view->previous = *(u64 *)(base + list + 8);
	view->freelist = *(u64 *)(base + freelist);
	u64 counters = *(u32 *)(base + unit);
	view->inuse = BITS(slab->inuse, counters);
	view->objects = BITS(slab->objects, counters);
	return 0;
}

/* Bucket 0 is empty, 11 full, 1 to 10 are tenths. */
static always_inline void count_occupancy(u64 *buckets, u64 inuse, u64 objects)
{
	u64 bucket = 0;

	if (objects && inuse >= objects)
		bucket = 11;
	else if (objects && inuse)
		bucket = 1 + (u32)inuse * 10 / (u32)objects;
	if (bucket < 12)
		buckets[bucket]++;
}

#endif
