package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// runner runs tests with and without mutants.
type runner struct {
	options
	w        io.Writer
	code     *source
	programs []program
	work     string
	tests    []*test
	mu       sync.Mutex
}

// test is one test function.
type test struct {
	program program
	name    string
	took    time.Duration  // by the clock
	cpu     time.Duration  // with all processes that it starts
	reached map[int]bool   // mutants whose statement it executes
	left    bool           // not run with mutants: it fails without one, or is too slow
	kills   map[string]int // by file of the mutant
}

// listing is the limit of a process that lists tests.
const listing = 10 * time.Minute

// reach runs each test alone without a mutant, and learns how long it takes and what it executes.
func (r *runner) reach(ctx context.Context) error {
	var all []*test
	for _, p := range r.programs {
		got := r.start(ctx, p, listing, nil, "-test.list", ".")
		if got.err != nil {
			return fmt.Errorf("list the tests of %s: %w\n%s", p.folder, got.err, got.out)
		}
		for name := range strings.FieldsSeq(string(got.out)) {
			if strings.HasPrefix(name, "Test") {
				all = append(all, &test{program: p, name: name, reached: map[int]bool{}, kills: map[string]int{}})
			}
		}
	}
	r.tests = all
	return each(ctx, r.workers, all, r.learn)
}

// learn runs one test without a mutant, again if it fails: a busy machine can break it. Of a test that is left out, it
// keeps what was reached.
func (r *runner) learn(ctx context.Context, t *test) error {
	file := filepath.Join(r.work, fmt.Sprintf("reached-%p", t))
	env := []string{"PASSBOOK_MUTANT=-1", "PASSBOOK_MUTANT_REACHED=" + file}
	var got result
	for range 2 {
		got = r.start(ctx, t.program, 10*time.Second+5*r.slowest, env, "-test.run", "^"+t.name+"$")
		if got.err == nil || got.late || ctx.Err() != nil {
			break
		}
	}
	t.took, t.cpu = got.wall, got.cpu
	switch t.left = got.err != nil || t.cpu > r.slowest; {
	case ctx.Err() != nil:
		return ctx.Err()
	case got.late || got.err == nil && t.left:
		fmt.Fprintf(r.w, "mutate: %s of %s is left out: %.0f s of CPU time\n", t.name, t.program.folder,
			t.cpu.Seconds())
	case t.left:
		fmt.Fprintf(r.w, "mutate: %s of %s fails without a mutant and is left out: %v\n%s\n", t.name, t.program.folder,
			got.err, got.out[max(0, len(got.out)-2000):])
	}
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for line := range strings.FieldsSeq(string(text)) {
		if id, err := strconv.Atoi(line); err == nil {
			t.reached[id] = true
		}
	}
	return nil
}

// kill runs the tests that reach a mutant, those first that detect most in the least time, until one fails. A mutant
// that only tests reach that did not run is not judged.
func (r *runner) kill(ctx context.Context, mutants []*mutant) error {
	done := 0
	return each(ctx, r.workers, mutants, func(ctx context.Context, m *mutant) error {
		if m.outcome == equivalent {
			return nil
		}
		groups, all := r.groups(m)
		got := survived
		if len(groups) == 0 {
			got = unreached
		}
		for _, group := range groups {
			by, finished, err := r.detects(ctx, m, group)
			if err != nil {
				return err
			}
			if by != "" {
				got, m.by = killed, by
				break
			}
			all = all && finished
		}
		if m.outcome = got; !all && got != killed {
			m.outcome = undecided
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if done++; done%20 == 0 {
			fmt.Fprintf(r.w, "mutate: %d of %d mutants\n", done, len(mutants))
		}
		return nil
	})
}

// groups divides the tests that reach a mutant: each group is one process, the next one takes longer. all is false if
// others reach it that do not run.
func (r *runner) groups(m *mutant) (groups [][]*test, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var folders []string
	for _, t := range r.code.targets {
		if t.folder == m.pkg {
			folders = t.tests
		}
	}
	var mine []*test
	all = true
	for _, t := range r.tests {
		switch {
		case !t.reached[m.id] || !slices.Contains(folders, t.program.folder):
		case t.left:
			all = false
		default:
			mine = append(mine, t)
		}
	}
	worth := map[*test]float64{}
	for _, t := range mine {
		worth[t] = float64(1+4*t.kills[m.file]) / (t.cpu + t.took/20).Seconds()
	}
	slices.SortStableFunc(mine, func(a, b *test) int { return cmp.Compare(worth[b], worth[a]) })
	if r.budget > 0 {
		fits := within(r.budget, mine)
		mine, all = fits, all && len(fits) == len(mine)
	}
	limit := 500 * time.Millisecond
	for len(mine) > 0 {
		group, sum := []*test{mine[0]}, mine[0].cpu
		rest := slices.DeleteFunc(slices.Clone(mine[1:]), func(t *test) bool {
			if t.program == group[0].program && sum+t.cpu <= limit {
				group, sum = append(group, t), sum+t.cpu
				return true
			}
			return false
		})
		groups, mine, limit = append(groups, group), rest, limit*3
	}
	return groups, all
}

// within keeps as many of the first tests as fit into a sum of CPU time, and at least one.
func within(budget time.Duration, tests []*test) []*test {
	var sum time.Duration
	for i, t := range tests {
		if sum += t.cpu; sum > budget && i > 0 {
			return tests[:i]
		}
	}
	return tests
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// detects runs one group of tests with the mutant and names the test that failed. A group that does not end detects
// the mutant if it ends without one; otherwise the machine is too busy, and the group has not finished.
func (r *runner) detects(ctx context.Context, m *mutant, group []*test) (by string, finished bool, err error) {
	var names []string
	var usual time.Duration
	for _, t := range group {
		names, usual = append(names, t.name), usual+t.took
	}
	args := []string{"-test.failfast", "-test.run", "^(" + strings.Join(names, "|") + ")$"}
	limit := 15*time.Second + 5*usual
	got := r.start(ctx, group[0].program, limit, []string{fmt.Sprintf("PASSBOOK_MUTANT=%d", m.id)}, args...)
	if ctx.Err() != nil {
		return "", false, ctx.Err()
	}
	if got.err == nil {
		return "", true, nil
	}
	by = names[0]
	if found := failed.FindSubmatch(got.out); found != nil {
		by = string(found[1])
	}
	end := ""
	if got.late {
		if r.start(ctx, group[0].program, limit, nil, args...).late {
			return "", false, ctx.Err()
		}
		end = " (does not end)"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range group {
		if t.name == by {
			t.kills[m.file]++
		}
	}
	return group[0].program.folder + " " + by + end, true, nil
}

// result is how a process ended.
type result struct {
	out       []byte
	wall, cpu time.Duration
	late      bool // ended by its limit
	err       error
}

// start runs a test program in a separate process group, which ends with it.
func (r *runner) start(ctx context.Context, p program, limit time.Duration, env []string, args ...string) (got result) {
	temp, err := os.MkdirTemp(r.memory(), "mutant")
	if err != nil {
		return result{err: err}
	}
	defer remove(r.w, temp)
	if err := os.Chmod(temp, 0o711); err != nil { // some tests start programs as another user
		return result{err: err}
	}
	from := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir = filepath.Join(r.code.root, p.folder)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "PASSBOOK_TEST_PROGRAMS="+filepath.Join(r.work, "programs"),
		"TEMPORAL_DEBUG=1") // on a busy machine, a workflow that the system stops for a second is not a deadlock
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	got.err = cmd.Run()
	got.out, got.wall, got.late = out.Bytes(), time.Since(from), errors.Is(ctx.Err(), context.DeadlineExceeded)
	if cmd.ProcessState != nil {
		got.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what the test left behind
	}
	return got
}

// remove deletes a temporary folder. A process that a mutant left behind can still write to it.
func remove(w io.Writer, folder string) {
	if err := os.RemoveAll(folder); err != nil {
		fmt.Fprintf(w, "mutate: delete %s: %v; delete it by hand\n", folder, err)
	}
}

// memory is a folder for temporary files that no disk slows down.
func (r *runner) memory() string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return shm
	}
	return ""
}

// each calls do for all elements, a number of them at the same time, until one fails.
func each[T any](ctx context.Context, workers int, all []T, do func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan T)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for one := range next {
				if err := do(ctx, one); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, one := range all {
		if ctx.Err() != nil {
			break
		}
		next <- one
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}
