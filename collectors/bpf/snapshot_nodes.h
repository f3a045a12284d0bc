/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The nodes of a cache: their partial lists, which are walked, and their barns.
 *
 * Source of truth: mm/slub.c, Linux 6.1 to 7.3.
 */
#ifndef SLABCTL_SNAPSHOT_NODES_H
#define SLABCTL_SNAPSHOT_NODES_H

/* ---- the partial list of a node
 * From both ends at once: the descriptors are seldom in a cache of the
 * processor, which so waits for two at a time. A list over the limit is looked at
 * half from either end, as the kernel itself does, since slabs are put at the
 * end that tells how full they are. */
enum { LEAST_WALK = 64 }; /* of each list, when there is no more to be spent */
struct walk {
	struct cache_record *out;
	u64 cache, next, previous, last, left, walked, objects, inuse, moved;
};

static always_inline int walk_slab(struct walk *walk, u64 at, struct slab_view *slab)
{
	if (slab->cache != walk->cache || slab->inuse > slab->objects) {
		walk->moved = MOVED_PARTIAL;
		return 1;
	}
	walk->walked++;
	walk->left--;
	walk->objects += slab->objects;
	walk->inuse += slab->inuse;
	count_occupancy(&walk->out->w[CACHE_OCCUPANCY], slab->inuse, slab->objects);
	if (!walk->out->w[CACHE_SAMPLE_OBJECT] && slab->freelist) {
		walk->out->w[CACHE_SAMPLE_SLAB] = at;
		walk->out->w[CACHE_SAMPLE_OBJECT] = slab->freelist;
	}
	return 0;
}

static long walk_step(u64 step, struct walk *walk)
{
	struct slab_view front, back;
	struct slab *none = 0;
	u64 first = walk->next - OFFSET(none->slab_list);
	u64 second = walk->previous - OFFSET(none->slab_list);
	u64 both = walk->left > 1;

	if (!walk->left)
		return 1;
	if (look_at_slab(first, &front) || (both && look_at_slab(second, &back))) {
		walk->moved = MOVED_PARTIAL;
		return 1;
	}
	if (walk_slab(walk, first, &front))
		return 1;
	walk->last = walk->next;
	walk->next = front.next;
	if (both) {
		if (walk_slab(walk, second, &back))
			return 1;
		walk->last = walk->previous;
		walk->previous = back.previous;
	}
	return 0;
}

static noinline int walk_list(struct kmem_cache_node *node, u64 listed, u64 limit, struct walk *walk)
{
	u64 now = 0;

	/* One that came this moment is as good as one that comes the next. */
	if (!listed)
		return 0;
	if (READ(&walk->next, node->partial.next) || READ(&walk->previous, node->partial.prev))
		return 1;
	walk->left = listed < limit ? listed : limit;
	bpf_loop((walk->left + 1) / 2, walk_step, walk, 0);
	if (listed > limit) {
		walk->moved |= MOVED_CUT;
	} else {
		/* Where the two met, each is at what the other was at last. */
		u64 met = listed & 1 ? walk->previous : walk->next;
		if (met != walk->last || READ(&now, node->nr_partial) || now != listed)
			walk->moved |= MOVED_PARTIAL;
	}
	return 0;
}

/* ---- barns. The kernel keeps ten full sheaves at the most. */
enum { MOST_SHEAVES = 1024 };
struct barn_walk {
	u64 head, at, objects, sheaves, capacity;
};

static long barn_step(u64 step, struct barn_walk *walk)
{
	struct slab_sheaf *none = 0;
	u64 size = 0, next = 0;
	struct list_head *link = (void *)walk->at;

	if (walk->at == walk->head)
		return 1;
	struct slab_sheaf *sheaf = (void *)(walk->at - OFFSET(none->barn_list));
	if (READ(&size, sheaf->size) || READ(&next, link->next) || size > walk->capacity)
		return 1;
	walk->objects += size;
	walk->sheaves++;
	walk->at = next;
	return 0;
}

static noinline int look_at_barn(u64 at, struct work *work, u64 *node)
{
	struct node_barn *barn = (void *)at;
	u64 *out = work->out->w;
	struct barn_walk walk = { .capacity = out[CACHE_SHEAF_CAPACITY] };
	u64 full = 0, empty = 0;

	if (READ(&full, barn->nr_full) || READ(&empty, barn->nr_empty) || READ(&walk.at, barn->sheaves_full.next))
		return 1;
	walk.head = at + OFFSET(barn->sheaves_full);
	if (walk.at != walk.head)
		bpf_loop((full < MOST_SHEAVES ? full : MOST_SHEAVES) + 8, barn_step, &walk, 0);
	if (walk.at != walk.head || walk.sheaves != full)
		out[CACHE_MOVED] |= MOVED_BARN;
	out[CACHE_BARN_FULL] += full;
	out[CACHE_BARN_EMPTY] += empty;
	out[CACHE_BARN_OBJECTS] += walk.objects;
	out[CACHE_KNOWN] |= BARN_FIGURES;
	node[NODE_BARN_FULL] = full;
	node[NODE_BARN_EMPTY] = empty;
	node[NODE_KNOWN] |= BIT(NODE_BARN_FULL) | BIT(NODE_BARN_EMPTY);
	return 0;
}

/* ---- nodes: where a cache keeps its pointers to them */
static noinline int node_in_array(u64 cache, u32 number, u64 *node, u64 *barn)
{
	struct kmem_cache *s = (void *)cache;
	struct kmem_cache_node *none = 0;

	if (bpf_probe_read_kernel(node, 8, (void *)(cache + OFFSET(s->node) + number * 8ull)))
		return 1;
	return *node && HAS(none->barn) && read_barn((void *)*node, barn);
}

static noinline int node_in_pairs(u64 cache, u32 number, u64 *node, u64 *barn)
{
	struct kmem_cache___per_node *s = (void *)cache;
	u64 first = OFFSET(s->per_node[0]), second = OFFSET(s->per_node[1]);
	struct kmem_cache_per_node_ptrs *pair = (void *)(cache + first + number * (second - first));

	return READ(node, pair->node) || READ(barn, pair->barn);
}

static noinline int look_at_node(struct work *work, u32 number, u64 address, u64 *part)
{
	struct kmem_cache_node *node = (void *)address;
	struct walk walk = { .out = work->out, .cache = work->cache };
	u64 limit = work->limit, left = *work->left;

	TAKE(part, NODE_PARTIAL, node->nr_partial);
	TAKE_IF(part, NODE_SLABS, node->nr_slabs, read_slabs, node);
	TAKE_IF(part, NODE_TOTAL_OBJECTS, node->total_objects, read_total_objects, node);
	u64 wanted = BIT(NODE_PARTIAL) | (HAS(node->nr_slabs) ? BIT(NODE_SLABS) : 0) |
		     (HAS(node->total_objects) ? BIT(NODE_TOTAL_OBJECTS) : 0);
	if ((part[NODE_KNOWN] & wanted) != wanted)
		return 1;
	if (left < LEAST_WALK)
		left = LEAST_WALK;
	if (limit > left)
		limit = left;
	if (walk_list(node, part[NODE_PARTIAL], forget(&part[NODE_WALKED], limit), &walk))
		return 1;
	part[NODE_WALKED_OBJECTS] = walk.objects;
	part[NODE_WALKED_INUSE] = walk.inuse;
	spend(work, forget(&part[NODE_WALKED], walk.walked));
	/* The node has no mark of its own. */
	if (!walk.moved)
		part[NODE_KNOWN] |= BIT(NODE_WALKED) | BIT(NODE_WALKED_OBJECTS) | BIT(NODE_WALKED_INUSE);
	work->out->w[CACHE_MOVED] |= walk.moved;
	return 0;
}

static noinline int find_node(u64 cache, u32 number, u64 *node, u64 *barn)
{
	struct kmem_cache___per_node *pairs = 0;
	struct kmem_cache *array = 0;

	if (HAS(pairs->per_node))
		return node_in_pairs(cache, number, node, barn);
	if (HAS(array->node))
		return node_in_array(cache, number, node, barn);
	return 1;
}

static long node_step(u64 number, struct work *work)
{
	struct node_barn *barns = 0;
	u64 *part = new_part(HEAD(RECORD_NODE, NODE_WORDS), number);
	u64 node = 0, barn = 0;
	u64 *out = work->out->w;

	if (!part || find_node(work->cache, number, &node, &barn)) {
		work->out->missing |= NODE_FIGURES | BARN_FIGURES;
		return 0;
	}
	if (HAS(barns->nr_full) && barn && look_at_barn(barn, work, part))
		work->out->missing |= BARN_FIGURES;
	if (!node)
		return 0;
	if (look_at_node(work, number, node, part)) {
		work->out->missing |= NODE_FIGURES;
		return 0;
	}
	out[CACHE_PARTIAL] += part[NODE_PARTIAL];
	out[CACHE_SLABS] += part[NODE_SLABS];
	out[CACHE_TOTAL_OBJECTS] += part[NODE_TOTAL_OBJECTS];
	out[CACHE_WALKED] += part[NODE_WALKED];
	out[CACHE_WALKED_OBJECTS] += part[NODE_WALKED_OBJECTS];
	out[CACHE_WALKED_INUSE] += part[NODE_WALKED_INUSE];
	/* The same fields are there, or not, for every node. */
	u64 known = part[NODE_KNOWN];
	out[CACHE_KNOWN] |= BIT(CACHE_PARTIAL) | WALK_FIGURES;
	if (known & BIT(NODE_SLABS))
		out[CACHE_KNOWN] |= BIT(CACHE_SLABS);
	if (known & BIT(NODE_TOTAL_OBJECTS))
		out[CACHE_KNOWN] |= BIT(CACHE_TOTAL_OBJECTS);
	if (work->parts & PARTS_NODES)
		emit(work->seq, part, NODE_WORDS * sizeof(u64));
	return 0;
}

/* Counts once more, to tell whether slabs or sheaves went from a node to a
 * processor, or back, or came new, after the one and before the other was looked at. */
static long settle_step(u64 number, struct work *work)
{
	struct cache_record *out = work->out;
	struct node_barn *barns = 0;
	u64 at = 0, barn = 0, now = 0;

	if (find_node(work->cache, number, &at, &barn))
		return 1;
	struct kmem_cache_node *node = (void *)at;
	if (at && !READ(&now, node->nr_partial))
		out->partial += now;
	if (at && HAS(node->nr_slabs) && !read_slabs(node, &now))
		out->slabs += now;
	if (HAS(barns->nr_full) && barn && !read_full(barn, &now))
		out->full += now;
	return 0;
}

#endif
