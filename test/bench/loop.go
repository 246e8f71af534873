package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/hosting"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// ask is the step in which the plain loop starts the agent and waits for it.
const ask durable.Op = "ask"

// step is a change of the disk by a run, or a call.
type step struct {
	op   durable.Op
	path string // below the folder of the environment
	size int    // of a write, in bytes
}

// syncs reports whether the step waits for the disk.
func (s step) syncs() bool {
	return s.op == durable.OpSync || s.op == durable.OpSyncFolder || s.op == durable.OpSyncSystem
}

// record executes a run with a worker in this process, and records each step of its durable writes.
func (h *env) record(ctx context.Context, def operations.Definition) ([]step, error) {
	var mu sync.Mutex
	var steps []step
	note := func(op durable.Op, path string, size int) {
		mu.Lock()
		defer mu.Unlock()
		below, inside := strings.CutPrefix(path, h.temp)
		if !inside { // the parent folder is synced too
			below = ""
		}
		steps = append(steps, step{op, below, size})
	}
	disk := durable.Disk{Hook: func(s durable.Step) error {
		note(s.Op, s.Path, len(s.Data))
		return nil
	}}
	runs, err := h.launch(ctx, def, 1, disk)
	if err != nil {
		return nil, err
	}
	polling, stop := context.WithCancel(ctx)
	worker := make(chan error, 1)
	go func() {
		worker <- hosting.Run(polling, hosting.Options{Settings: h.op.Settings, Client: h.op.Client, Host: h.op.Host,
			Adjust: func(c *activities.Config) {
				c.OnStep = func(s activities.Step) error {
					note(durable.Op(s.Op), s.Path, len(s.Data))
					return nil
				}
				c.Supervisor = []string{filepath.Join(h.temp, supervisor.Program)}
				c.OnPoint = func(p activities.Point, _ string) {
					if p == activities.PointSpawned {
						note(ask, "", 0)
					}
				}
			}})
	}()
	err = h.await(ctx, runs)
	stop()
	return steps, errors.Join(err, <-worker)
}

// loops repeats the steps for all runs concurrently, with as many concurrent calls as a worker makes.
func (h *env) loops(ctx context.Context, steps []step, row size) (pace, error) {
	slots := make(chan struct{}, h.op.Settings.Calls)
	players, errs := make([]player, row.Runs), make([]error, row.Runs)
	var all sync.WaitGroup
	for i := range players {
		players[i] = newPlayer(filepath.Join(h.temp, "loops", fmt.Sprint(i)), h.agent(), slots)
		all.Go(func() { errs[i] = players[i].run(ctx, steps) })
	}
	all.Wait()
	ended := time.Now()
	if err := errors.Join(errs...); err != nil {
		return pace{}, err
	}
	var p pace
	var begun time.Time
	for _, pl := range players {
		p.Gaps, begun = append(p.Gaps, gaps(pl.asked)...), earlier(begun, pl.asked[0])
	}
	p.Each = ended.Sub(begun) / time.Duration(row.Runs*row.Passes)
	return p, os.RemoveAll(filepath.Join(h.temp, "loops"))
}

// player repeats steps in a separate folder.
type player struct {
	root  string
	agent string
	slots chan struct{}       // bounds concurrent calls
	files map[string]*os.File // open, by path
	temps map[string]string   // temporary file by final path
	asked []time.Time
}

func newPlayer(root, agent string, slots chan struct{}) player {
	return player{root: root, agent: agent, slots: slots, files: map[string]*os.File{}, temps: map[string]string{}}
}

func (p *player) run(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if err := p.play(ctx, s); err != nil {
			return fmt.Errorf("plain loop: %s %s: %w", s.op, s.path, err)
		}
	}
	return nil
}

func (p *player) play(ctx context.Context, s step) error {
	path := filepath.Join(p.root, s.path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // it may have existed before the run
		return err
	}
	switch s.op {
	case ask:
		p.asked = append(p.asked, time.Now())
		p.slots <- struct{}{}
		defer func() { <-p.slots }()
		return answer(ctx, p.agent, p.root)
	case durable.OpMkdir:
		return os.MkdirAll(path, 0o755)
	case durable.OpCreate:
		return p.create(path)
	case durable.OpWrite:
		_, err := p.files[path].Write(make([]byte, s.size))
		return err
	case durable.OpSync:
		return p.sync(path)
	case durable.OpReadBack:
		_, err := os.ReadFile(path)
		return err
	case durable.OpRename:
		return errors.Join(p.close(p.temps[path]), os.Rename(p.temps[path], path))
	case durable.OpSyncSystem:
		return durable.Disk{}.SyncFileSystem(path)
	case durable.OpLink:
		return gone(os.Link(p.temps[path], path), fs.ErrExist)
	case durable.OpRemove:
		return gone(os.Remove(path), fs.ErrNotExist)
	case durable.OpSyncFolder:
		return syncFolder(path)
	}
	return errors.New("a run without faults does not do this")
}

// gone drops an error that the run had too.
func gone(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

var temporary = regexp.MustCompile(`\.tmp\.[0-9a-z]+$`)

func (p *player) create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	p.files[path], p.temps[temporary.ReplaceAllString(path, "")] = f, path
	return err
}

// sync ends the writing of a file. A file that is not open existed before the run, for example a blob of an earlier
// one.
func (p *player) sync(path string) error {
	f := p.files[path]
	delete(p.files, path)
	if f == nil {
		var err error
		if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return err
		}
	}
	return errors.Join(f.Sync(), f.Close())
}

// close ends the writing of a file that is not synced.
func (p *player) close(path string) error {
	f := p.files[path]
	delete(p.files, path)
	if f == nil {
		return nil
	}
	return f.Close()
}

func syncFolder(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// answer starts the agent and waits for its end. Prompt and answer are files, as in a run.
func answer(ctx context.Context, agent, dir string) (err error) {
	prompt, err := os.OpenFile(filepath.Join(dir, "prompt.md"), os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prompt.Close()) }()
	out, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, agent)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = prompt, out, os.Stderr
	return errors.Join(cmd.Run(), out.Close())
}

// bare measures the agent from start to end.
func (h *env) bare(ctx context.Context) (time.Duration, error) {
	var all []time.Duration
	for range 100 {
		begun := time.Now()
		if err := answer(ctx, h.agent(), h.temp); err != nil {
			return 0, err
		}
		all = append(all, time.Since(begun))
	}
	return median(all), nil
}

// fsyncs counts the syncs of steps.
func fsyncs(steps []step) (n int) {
	for _, s := range steps {
		if s.syncs() {
			n++
		}
	}
	return n
}
