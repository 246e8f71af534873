package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// amounts are the sizes of the measurements.
type amounts struct {
	Latency  int           // workflows of five steps, one after another
	Many     int           // workflows of five steps, atOnce at a time
	Passes   int           // of the loop
	Steps    int           // of the workflow that is weighed
	Call     time.Duration // of a call during which the worker is killed
	Patience time.Duration
}

var (
	full = amounts{Latency: 20, Many: 200, Passes: 56, Steps: 1000, Call: 2 * time.Second, Patience: 20 * time.Minute}
	// brief is a trial of the command.
	brief = amounts{Latency: 2, Many: 20, Passes: 8, Steps: 16, Call: time.Second / 2, Patience: time.Minute}
)

const (
	fewSteps = 5
	atOnce   = 50
)

// Figures are the rows of the table.
const (
	figStart = "start"
	figOne   = "five"
	figMany  = "many"
	figLoop  = "loop"
	figKill  = "kill"
	figCalls = "calls"
	figBytes = "bytes"
)

// contender is one column of the table.
type contender struct {
	name string
	// open prepares an engine in an empty folder.
	open func(dir string) engine
	// agents: each step starts a program, also one that does nothing.
	agents bool
}

const passbookName = "Passbook"

// compare measures Passbook and its peers in turn, and writes the table.
func compare(ctx context.Context, s settings, dir, programs string, out io.Writer) error {
	t := table{amounts: full, reps: s.Reps, values: map[string]map[string][]float64{}, contenders: []contender{
		{passbookName, func(dir string) engine { return newPassbook(s.Root, programs, dir) }, true},
		{"shell loop", func(dir string) engine { return newShellLoop(dir) }, false},
		{"Temporal SDK", func(dir string) engine {
			return &plainSDK{root: s.Root, program: filepath.Join(programs, "peer"), dir: dir}
		}, false},
	}}
	if s.Quick {
		t.amounts = brief
	}
	t.head = where()
	for rep := range t.reps {
		for i, c := range t.contenders {
			m := trial{amounts: t.amounts, contender: c, agent: filepath.Join(programs, "agent"),
				dir: filepath.Join(dir, fmt.Sprintf("%d-%d", rep, i)), values: map[string]float64{}}
			if err := errors.Join(m.run(ctx), os.RemoveAll(m.dir)); err != nil {
				return fmt.Errorf("%s, repetition %d: %w", c.name, rep+1, err)
			}
			t.add(c.name, m.values)
		}
	}
	t.write(out)
	return nil
}

// trial measures one contender once.
type trial struct {
	amounts
	contender
	agent  string // the program
	dir    string
	values map[string]float64
}

// session is an engine in a folder, and the log of its agents.
type session struct {
	*trial
	engine
	log starts
}

// run makes all measurements. Each of them has its own engine in an empty folder.
func (t *trial) run(ctx context.Context) error {
	return errors.Join(t.with(ctx, "short", measureShort), t.with(ctx, "kill", measureKill),
		t.with(ctx, "long", measureLong))
}

// with starts an engine, measures, and ends it.
func (t *trial) with(ctx context.Context, name string, measure func(context.Context, *session) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.Patience, fmt.Errorf("no result within %s", t.Patience))
	defer cancel()
	dir := filepath.Join(t.dir, name)
	if err := os.MkdirAll(dir+"-logs", 0o755); err != nil {
		return err
	}
	begun := time.Now()
	s := &session{trial: t, engine: t.open(dir), log: starts(filepath.Join(dir+"-logs", "calls"))}
	defer func() { err = errors.Join(err, s.stop(ctx), os.RemoveAll(dir)) }()
	if err := s.start(ctx); err != nil {
		return err
	}
	err = measure(ctx, s)
	fmt.Fprintf(os.Stderr, "bench: %s, %s: %.1f s\n", t.name, name, time.Since(begun).Seconds())
	return err
}

// calls is the agent that records its start in the log.
func (s *session) calls(take time.Duration) []string {
	return []string{s.agent, "-log=" + string(s.log), "-take=" + take.String()}
}

// ended waits for the end of a workflow, and checks the number of its answers.
func (s *session) ended(ctx context.Context, id string, answers int) error {
	got, err := s.await(ctx, id)
	if err == nil && got != answers {
		err = fmt.Errorf("workflow %s has %d answers; %d were expected", id, got, answers)
	}
	return err
}

// measureShort measures the start of the engine in a folder that was used before, workflows of five steps, and the loop.
func measureShort(ctx context.Context, s *session) error {
	if err := s.stop(ctx); err != nil {
		return err
	}
	begun := time.Now()
	if err := errors.Join(s.start(ctx), s.begin(ctx, "first", work{Steps: 1, Agent: s.calls(0)})); err != nil {
		return err
	}
	first, err := s.log.await(ctx, 1)
	if err = errors.Join(err, s.ended(ctx, "first", 1)); err != nil {
		return err
	}
	s.values[figStart] = first.Sub(begun).Seconds()
	if _, _, err := s.five(ctx, "warm", 2, 1); err != nil { // caches and connections
		return err
	}
	each, _, err := s.five(ctx, "one", s.Latency, 1)
	if err != nil {
		return err
	}
	s.values[figOne] = median(each).Seconds()
	_, wall, err := s.five(ctx, "many", s.Many, atOnce)
	if err != nil {
		return err
	}
	s.values[figMany] = float64(s.Many) / wall.Seconds()
	gap, err := s.loop(ctx)
	s.values[figLoop] = gap.Seconds()
	return err
}

// five executes workflows of five empty steps, and returns the time of each and of all together.
func (s *session) five(ctx context.Context, id string, n, parallel int) ([]time.Duration, time.Duration, error) {
	w := work{Steps: fewSteps}
	if s.agents {
		w.Agent = s.calls(0)
	}
	before, err := s.log.read()
	if err != nil {
		return nil, 0, err
	}
	each, errs := make([]time.Duration, n), make([]error, n)
	slots := make(chan struct{}, parallel)
	var all sync.WaitGroup
	begun := time.Now()
	for i, id := range names(id, n) {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			started := time.Now()
			if errs[i] = s.begin(ctx, id, w); errs[i] == nil {
				errs[i] = s.ended(ctx, id, fewSteps)
			}
			each[i] = time.Since(started)
		})
	}
	all.Wait()
	wall := time.Since(begun)
	if err := errors.Join(errs...); err != nil || !s.agents {
		return each, wall, err
	}
	return each, wall, s.log.exactly(len(before) + n*fewSteps)
}

// loop is the median time from the start of one call to that of the next one.
func (s *session) loop(ctx context.Context) (time.Duration, error) {
	before, err := s.log.read()
	if err != nil {
		return 0, err
	}
	if err := s.begin(ctx, "loop", work{Steps: s.Passes, Agent: s.calls(0)}); err != nil {
		return 0, err
	}
	if err := errors.Join(s.ended(ctx, "loop", s.Passes), s.log.exactly(len(before)+s.Passes)); err != nil {
		return 0, err
	}
	all, err := s.log.read()
	return median(gaps(all[len(before):])), err
}

// measureKill kills the worker in the middle of the second of three calls, and starts it again at once.
func measureKill(ctx context.Context, s *session) error {
	const steps = 3
	if err := s.begin(ctx, "killed", work{Steps: steps, Agent: s.calls(s.Call)}); err != nil {
		return err
	}
	second, err := s.log.await(ctx, 2)
	if err != nil {
		return err
	}
	select {
	case <-time.After(time.Until(second.Add(s.Call / 2))):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	at := time.Now()
	if err := errors.Join(s.kill(), s.rework(ctx)); err != nil {
		return err
	}
	if err := s.ended(ctx, "killed", steps); err != nil {
		return err
	}
	all, err := s.log.read()
	if err == nil && len(all) < steps {
		err = fmt.Errorf("%d calls were started; at least %d were expected", len(all), steps)
	}
	if err != nil {
		return err
	}
	s.values[figKill], s.values[figCalls] = all[len(all)-1].Sub(at).Seconds(), float64(len(all))
	return nil
}

// measureLong measures the bytes on disk of a workflow with many steps. Files are complete while the engine is stopped.
func measureLong(ctx context.Context, s *session) error {
	weighed := func() (map[string]int64, error) {
		if err := s.stop(ctx); err != nil {
			return nil, err
		}
		return s.stored()
	}
	empty, err := weighed()
	if err != nil {
		return err
	}
	if err := errors.Join(s.start(ctx), s.begin(ctx, "long", work{Steps: s.Steps, Agent: s.calls(0)})); err != nil {
		return err
	}
	if err := s.ended(ctx, "long", s.Steps); err != nil {
		return err
	}
	filled, err := weighed()
	for part, n := range filled {
		each := float64(n-empty[part]) / float64(s.Steps)
		s.values[figBytes] += each
		s.values[figBytes+" "+part] = each
	}
	return errors.Join(err, s.log.exactly(s.Steps))
}

// table collects the values of all contenders, by name and figure.
type table struct {
	amounts
	contenders []contender
	reps       int
	head       string // the machine
	values     map[string]map[string][]float64
}

func (t *table) add(name string, values map[string]float64) {
	if t.values[name] == nil {
		t.values[name] = map[string][]float64{}
	}
	for f, v := range values {
		t.values[name][f] = append(t.values[name][f], v)
	}
}

// row describes a figure.
type row struct {
	figure, title string
	format        func(float64) string
}

func (t *table) rows() []row {
	return []row{
		{figOne, "five empty steps, one workflow", seconds},
		{figMany, fmt.Sprintf("five empty steps, %d workflows at once: workflows a second", atOnce), plain},
		{figLoop, fmt.Sprintf("loop of %d passes: pass to pass", t.Passes), seconds},
		{figKill, "worker killed in a call: until the next call begins", seconds},
		{figCalls, "calls started for three passes", plain},
		{figBytes, fmt.Sprintf("stored bytes per step, of %d", t.Steps), plain},
		{figStart, "start of the engine: until the first step", seconds},
	}
}

// write writes Markdown: medians, and in brackets each peer's divided by Passbook's.
func (t *table) write(out io.Writer) {
	fmt.Fprintf(out, "%s; medians of %d, in turn. In brackets: divided by Passbook's figure.\n", t.head, t.reps)
	head, line := "\n| |", "|---|"
	for _, c := range t.contenders {
		head, line = head+" "+c.name+" |", line+"--:|"
	}
	fmt.Fprintln(out, head+"\n"+line)
	for _, r := range t.rows() {
		fmt.Fprintf(out, "| %s |", r.title)
		base := median(t.values[passbookName][r.figure])
		for _, c := range t.contenders {
			value := median(t.values[c.name][r.figure])
			text := r.format(value)
			if c.name != passbookName && r.figure != figCalls && base > 0 {
				text += fmt.Sprintf(" (%s)", plain(value/base))
			}
			fmt.Fprintf(out, " %s |", text)
		}
		fmt.Fprintln(out)
	}
	var parts []string
	for _, c := range t.contenders {
		for _, f := range slices.Sorted(maps.Keys(t.values[c.name])) {
			if part, is := strings.CutPrefix(f, figBytes+" "); is {
				parts = append(parts, fmt.Sprintf("%s: %s %s", c.name, part, plain(median(t.values[c.name][f]))))
			}
		}
	}
	fmt.Fprintf(out, "\nStored bytes per step: %s.\n", strings.Join(parts, "; "))
}

// seconds writes a time.
func seconds(s float64) string {
	if s >= 1 {
		return plain(s) + " s"
	}
	return plain(s*1000) + " ms"
}

// plain writes a number with two or three significant digits.
func plain(n float64) string {
	switch {
	case n >= 99.95:
		return fmt.Sprintf("%.0f", n)
	case n >= 9.995:
		return fmt.Sprintf("%.1f", n)
	case n >= 0.0995 || n == 0:
		return strings.TrimSuffix(fmt.Sprintf("%.2f", n), ".00")
	}
	return fmt.Sprintf("%.2g", n)
}
