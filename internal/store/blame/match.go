package blame

// mostEdits limits the comparison of two texts, whose cost is quadratic. The middle of texts with more differences
// counts as new.
const mostEdits = 2000

// match returns for each line of next the index of the same line of old, or -1: a longest common subsequence
// (Myers, "An O(ND) difference algorithm and its variations", 1986).
func match(old, next []string) []int {
	out := make([]int, len(next))
	for i := range out {
		out[i] = -1
	}
	head := 0
	for head < len(old) && head < len(next) && old[head] == next[head] {
		out[head] = head
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(next)-head && old[len(old)-1-tail] == next[len(next)-1-tail] {
		tail++
		out[len(next)-tail] = len(old) - tail
	}
	middle(old[head:len(old)-tail], next[head:len(next)-tail], func(a, b int) { out[head+b] = head + a })
	return out
}

// middle calls same for every pair of lines that a shortest edit script keeps.
func middle(a, b []string, same func(i, j int)) {
	reached, ok := search(a, b)
	if !ok {
		return
	}
	x, y := len(a), len(b)
	for d := len(reached) - 1; d >= 0; d-- {
		k := x - y
		px, py := 0, 0
		if d > 0 {
			px = reached[d-1].before(k, d)
			py = px - previous(reached[d-1], k, d)
		}
		for x > px && y > py && a[x-1] == b[y-1] {
			x, y = x-1, y-1
			same(x, y)
		}
		x, y = px, py
	}
}

// front is how far a script of d edits reaches on each diagonal from -d to d; index d is diagonal 0.
type front []int

func (f front) at(k int) int {
	d := (len(f) - 1) / 2
	if k < -d || k > d {
		return -1
	}
	return f[k+d]
}

// previous returns the diagonal from which the d-th edit leads to diagonal k.
func previous(f front, k, d int) int {
	if k == -d || k != d && f.at(k-1) < f.at(k+1) {
		return k + 1
	}
	return k - 1
}

// before returns where the d-th edit starts that leads to diagonal k.
func (f front) before(k, d int) int { return f.at(previous(f, k, d)) }

// search returns the fronts of the scripts of 0, 1, 2, … edits, up to the first that leads from a to b.
func search(a, b []string) ([]front, bool) {
	var all []front
	for d := 0; d <= min(len(a)+len(b), mostEdits); d++ {
		f := make(front, 2*d+1)
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				last := all[d-1]
				from := previous(last, k, d)
				if x = last.at(from); from < k {
					x++ // a line of a goes
				}
			}
			for x < len(a) && x-k < len(b) && x-k >= 0 && a[x] == b[x-k] {
				x++
			}
			f[k+d] = x
			if x >= len(a) && x-k >= len(b) {
				return append(all, f), true
			}
		}
		all = append(all, f)
	}
	return nil, false
}
