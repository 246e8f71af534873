package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/connect"
	"github.com/passbook-run/passbook/internal/local"
)

// engine is Passbook or a peer in a folder: its server, if it has one, and one worker.
type engine interface {
	// start starts everything. The first start of a folder also creates it.
	start(ctx context.Context) error
	// stop ends everything in order. Without a running process it does nothing.
	stop(ctx context.Context) error
	// kill ends the worker as kill -9 does, and rework starts it again.
	kill() error
	rework(ctx context.Context) error
	// begin starts a workflow.
	begin(ctx context.Context, id string, w work) error
	// await waits until a workflow has ended, and returns the number of steps of which it has the answers.
	await(ctx context.Context, id string) (int, error)
	// stored is the number of bytes in the files of the stopped engine, by what they are.
	stored() (map[string]int64, error)
}

// plainSDK is one workflow with one activity for each step, on an embedded server of Passbook.
type plainSDK struct {
	root, program, dir string
	client             client.Client
	environ            []string
	worker             *exec.Cmd
}

func (s *plainSDK) state() string { return filepath.Join(s.dir, "state") }

func (s *plainSDK) log() string { return filepath.Join(s.dir, "worker.log") }

func (s *plainSDK) start(ctx context.Context) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	server, err := ensureServer(ctx, s.root, s.state())
	if err != nil {
		return err
	}
	s.environ = append(os.Environ(), server.SetEnv()...)
	conn, err := connect.Find(config.Settings{StateDir: s.state()})
	if err != nil {
		return err
	}
	if s.client, err = conn.Dial(ctx, server.Address, slog.New(slog.NewTextHandler(io.Discard, nil))); err != nil {
		return err
	}
	return s.rework(ctx)
}

func (s *plainSDK) rework(context.Context) (err error) {
	s.worker, err = startWorker(exec.Command(s.program), s.dir, s.log(), s.environ)
	return err
}

func (s *plainSDK) kill() error { return errors.Join(s.worker.Process.Kill(), waited(s.worker)) }

func (s *plainSDK) stop(ctx context.Context) error {
	err := endWorker(s.worker, s.log())
	if s.client != nil {
		s.client.Close()
		s.client = nil
	}
	_, stopped := local.Stop(context.WithoutCancel(ctx), s.state(), readyTimeout)
	return errors.Join(err, stopped)
}

func (s *plainSDK) begin(ctx context.Context, id string, w work) error {
	_, err := s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: "peer"}, "work", w)
	return err
}

func (s *plainSDK) await(ctx context.Context, id string) (answers int, err error) {
	err = s.client.GetWorkflow(ctx, id, "").Get(ctx, &answers)
	return answers, err
}

func (s *plainSDK) stored() (map[string]int64, error) {
	n, err := bytesIn(filepath.Join(s.state(), "server"))
	return map[string]int64{"database": n}, err
}

//go:embed loop.sh
var loopScript string

// shellLoop is a script for each workflow, which syncs each answer.
type shellLoop struct {
	dir string
	mu  sync.Mutex
	all map[string]*loopProcess
}

type loopProcess struct {
	work   work
	cmd    *exec.Cmd
	killed bool
	ended  chan struct{} // closed after err is set
	err    error
}

func newShellLoop(dir string) *shellLoop { return &shellLoop{dir: dir, all: map[string]*loopProcess{}} }

// start starts the loops again that were stopped.
func (l *shellLoop) start(ctx context.Context) error {
	return errors.Join(os.MkdirAll(l.dir, 0o755), l.rework(ctx))
}

// begin starts the script of a workflow, which continues where its journal ends.
func (l *shellLoop) begin(_ context.Context, id string, w work) error {
	args := append([]string{"-c", loopScript, "loop.sh", filepath.Join(l.dir, id), strconv.Itoa(w.Steps)}, w.Agent...)
	p := &loopProcess{work: w, cmd: exec.Command("bash", args...), ended: make(chan struct{})}
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[id] = p
	return nil
}

func (l *shellLoop) await(ctx context.Context, id string) (int, error) {
	l.mu.Lock()
	p := l.all[id]
	l.mu.Unlock()
	select {
	case <-p.ended:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	journal, err := os.ReadFile(filepath.Join(l.dir, id, "journal"))
	return bytes.Count(journal, []byte("\n")), errors.Join(p.err, err)
}

// kill ends all loops.
func (l *shellLoop) kill() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, p := range l.all {
		select {
		case <-p.ended:
		default:
			p.killed = true
			if err := p.cmd.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
				errs = append(errs, err)
			}
			<-p.ended
		}
	}
	return errors.Join(errs...)
}

// rework starts the loops again that have been killed.
func (l *shellLoop) rework(ctx context.Context) error {
	l.mu.Lock()
	killed := map[string]work{}
	for id, p := range l.all {
		if p.killed {
			killed[id] = p.work
		}
	}
	l.mu.Unlock()
	for id, w := range killed {
		if err := l.begin(ctx, id, w); err != nil {
			return err
		}
	}
	return nil
}

func (l *shellLoop) stop(context.Context) error { return l.kill() }

func (l *shellLoop) stored() (map[string]int64, error) {
	n, err := bytesIn(l.dir)
	return map[string]int64{"journal": n}, err
}

// bytesIn is the number of bytes in the files of a folder.
func bytesIn(folder string) (n int64, err error) {
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("measure %s: %w", path, err)
		}
		n += info.Size()
		return nil
	})
	if os.IsNotExist(err) {
		err = nil
	}
	return n, err
}
