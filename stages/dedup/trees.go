package dedup

import "math"

// trees are the trees of a forest whose vertices are numbered from 0. The caller first calls join with
// all edges (union-find), then link with each edge that connected two trees, then plant once. After
// that, reroot and parent may be called.
type trees interface {
	// join joins the trees of two vertices. It returns false if they were in the same tree already.
	join(a, b uint64) bool
	// tree returns the number of a vertex's tree, which is its lowest vertex. It may be called until
	// the first call of link.
	tree(v uint64) uint64
	// link adds an edge. The caller must add exactly the edges for which join returned true.
	link(a, b uint64)
	// plant chooses a root for each tree and finds the parent of each vertex.
	plant()
	// reroot makes a vertex the root of its tree.
	reroot(v uint64)
	// parent returns the next vertex on the way from v to the root. The root is its own parent.
	parent(v uint64) uint64
}

// newTrees returns n trees of one vertex each. They take up to 8 bytes for each vertex, or 16 bytes if
// there are more than 2^32 vertices.
func newTrees(n uint64) trees {
	if n-1 <= math.MaxUint32 || n == 0 {
		return newTreesOf[uint32](n)
	}
	return newTreesOf[uint64](n)
}

// treesOf implements trees. A V holds the number of a vertex.
type treesOf[V uint32 | uint64] struct {
	// next holds one value for each vertex. Until the first call of link, the value is the vertex's parent
	// in the union-find. From then on, it is the XOR of its neighbours' numbers. After plant, it is the
	// vertex's parent in its tree.
	next []V
	// degree holds the number of neighbours of each vertex, from the first call of link to the call
	// of plant. A degree is less than the number of vertices.
	degree []V
}

func newTreesOf[V uint32 | uint64](n uint64) *treesOf[V] {
	t := &treesOf[V]{next: make([]V, n)}
	for i := range t.next {
		t.next[i] = V(i)
	}
	return t
}

func (t *treesOf[V]) join(a, b uint64) bool {
	ra, rb := V(t.tree(a)), V(t.tree(b))
	t.next[max(ra, rb)] = min(ra, rb)
	return ra != rb
}

func (t *treesOf[V]) tree(v uint64) uint64 {
	i := V(v)
	for t.next[i] != i {
		t.next[i] = t.next[t.next[i]]
		i = t.next[i]
	}
	return uint64(i)
}

func (t *treesOf[V]) link(a, b uint64) {
	if t.degree == nil {
		t.degree = make([]V, len(t.next))
		clear(t.next)
	}
	t.next[a] ^= V(b)
	t.next[b] ^= V(a)
	t.degree[a]++
	t.degree[b]++
}

// plant removes one leaf after the other. A leaf has one neighbour, so the XOR of its neighbours is the
// number of this neighbour, which becomes its parent. The last vertex of a tree becomes the root.
func (t *treesOf[V]) plant() {
	for i := range t.degree {
		for leaf := V(i); t.degree[leaf] == 1; {
			up := t.next[leaf]
			t.degree[leaf] = 0
			t.degree[up]--
			if t.next[up] ^= leaf; t.degree[up] == 0 {
				t.next[up] = up
			}
			leaf = up
		}
	}
	t.degree = nil
}

func (t *treesOf[V]) reroot(v uint64) {
	at := V(v)
	for up := at; ; {
		next := t.next[at]
		t.next[at] = up
		if next == at {
			return
		}
		up, at = at, next
	}
}

func (t *treesOf[V]) parent(v uint64) uint64 { return uint64(t.next[v]) }
