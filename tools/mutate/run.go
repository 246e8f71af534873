package main

import (
	"bytes"
	"cmp"
	"context"
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
	took    time.Duration
	reached map[int]bool // mutants whose function it calls
	kills   int
}

// reach runs each test alone without a mutant, and learns how long it takes and what it calls.
func (r *runner) reach(ctx context.Context) error {
	var all []*test
	for _, p := range r.programs {
		out, err := r.start(ctx, p, time.Minute, nil, "-test.list", ".")
		if err != nil {
			return fmt.Errorf("list the tests of %s: %w\n%s", p.folder, err, out)
		}
		for name := range strings.FieldsSeq(string(out)) {
			if strings.HasPrefix(name, "Test") && r.code.wants(p, name, r.number > 0 || r.plant != "") {
				all = append(all, &test{program: p, name: name, reached: map[int]bool{}})
			}
		}
	}
	return each(ctx, r.workers, all, func(ctx context.Context, t *test) error {
		file := filepath.Join(r.work, fmt.Sprintf("reached-%p", t))
		from := time.Now()
		out, err := r.start(ctx, t.program, r.slowest, []string{"PASSBOOK_MUTANT=-1", "PASSBOOK_MUTANT_REACHED=" + file},
			"-test.run", "^"+t.name+"$")
		t.took = time.Since(from)
		if err != nil {
			if t.took >= r.slowest {
				return nil
			}
			fmt.Fprintf(r.w, "mutate: %s of %s fails without a mutant and is left out: %v\n%s\n", t.name,
				t.program.folder, err, out[max(0, len(out)-2000):])
			return nil
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
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tests = append(r.tests, t)
		return nil
	})
}

// kill runs the tests that reach a mutant, those first that detected others and then the fastest, until one fails.
func (r *runner) kill(ctx context.Context, mutants []*mutant) error {
	return each(ctx, r.workers, mutants, func(ctx context.Context, m *mutant) error {
		if m.outcome == equivalent {
			return nil
		}
		m.outcome = unreached
		for _, group := range r.groups(m) {
			m.outcome = survived
			by, err := r.detects(ctx, m, group)
			if err != nil {
				return err
			}
			if by != "" {
				m.outcome, m.by = killed, by
				break
			}
		}
		return nil
	})
}

// groups divides the tests that reach a mutant: each group is one process, the next one takes longer.
func (r *runner) groups(m *mutant) [][]*test {
	r.mu.Lock()
	defer r.mu.Unlock()
	var folders []string
	for _, t := range r.code.targets {
		if t.folder == m.pkg {
			folders = t.tests
		}
	}
	var mine []*test
	for _, t := range r.tests {
		if t.reached[m.id] && slices.Contains(folders, t.program.folder) {
			mine = append(mine, t)
		}
	}
	slices.SortStableFunc(mine, func(a, b *test) int {
		return cmp.Or(cmp.Compare(b.kills, a.kills), cmp.Compare(a.took, b.took))
	})
	if r.budget > 0 {
		mine = within(r.budget, mine)
	}
	var groups [][]*test
	limit := 500 * time.Millisecond
	for len(mine) > 0 {
		group, sum := []*test{mine[0]}, mine[0].took
		rest := slices.DeleteFunc(slices.Clone(mine[1:]), func(t *test) bool {
			if t.program == group[0].program && sum+t.took <= limit {
				group, sum = append(group, t), sum+t.took
				return true
			}
			return false
		})
		groups, mine, limit = append(groups, group), rest, limit*3
	}
	return groups
}

// within keeps as many of the first tests as fit into a sum of time, and at least one.
func within(budget time.Duration, tests []*test) []*test {
	var sum time.Duration
	for i, t := range tests {
		if sum += t.took; sum > budget && i > 0 {
			return tests[:i]
		}
	}
	return tests
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// detects runs one group of tests with the mutant and names the test that failed.
func (r *runner) detects(ctx context.Context, m *mutant, group []*test) (string, error) {
	var names []string
	var usual time.Duration
	for _, t := range group {
		names, usual = append(names, t.name), usual+t.took
	}
	out, err := r.start(ctx, group[0].program, 15*time.Second+5*usual, []string{fmt.Sprintf("PASSBOOK_MUTANT=%d", m.id)},
		"-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err == nil {
		return "", nil
	}
	by := names[0]
	if found := failed.FindSubmatch(out); found != nil {
		by = string(found[1])
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range group {
		if t.name == by {
			t.kills++
		}
	}
	return group[0].program.folder + " " + by, nil
}

// start runs a test program in a separate process group, which ends with it.
func (r *runner) start(ctx context.Context, p program, limit time.Duration, env []string, args ...string) (
	[]byte, error,
) {
	temp, err := os.MkdirTemp(r.memory(), "mutant")
	if err != nil {
		return nil, err
	}
	defer remove(r.w, temp)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir = filepath.Join(r.code.root, p.folder)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "PASSBOOK_TEST_PROGRAMS="+filepath.Join(r.work, "programs"),
		"TEMPORAL_DEBUG=1") // on a busy machine, a workflow that the system stops for a second is no deadlock
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what the test left behind
	}
	return out.Bytes(), err
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
