package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/passbook-run/passbook/test/bench/peer"
)

// server is what a peer's program needs: a database or a server. Its address is known once it has started.
type server interface {
	start(ctx context.Context) (address string, environ []string, err error)
	stop(ctx context.Context) error
	processes() []int
	stored() (int64, error)
}

// peerProgram is a peer of tools/peers: worker and client in one process, and a server, if it needs one.
type peerProgram struct {
	path   string
	dir    string
	server server // nil: it needs none
	// address is that of a program without a server.
	address string

	environ []string
	worker  *process
}

// process is a running program of tools/peers.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	printed bytes.Buffer
}

func (p *peerProgram) start(ctx context.Context) error {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	if p.server != nil {
		var err error
		if p.address, p.environ, err = p.server.start(ctx); err != nil {
			return err
		}
	}
	return p.rework(ctx)
}

func (p *peerProgram) rework(ctx context.Context) error {
	w := &process{cmd: exec.Command(p.path, "-dir", p.dir, "-address", p.address)}
	w.cmd.Env, w.cmd.Dir, w.cmd.Stderr = append(os.Environ(), p.environ...), p.dir, &w.printed
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	w.in, w.out = in, json.NewDecoder(out)
	if err := w.cmd.Start(); err != nil {
		return err
	}
	p.worker = w
	_, err = p.receive(ctx) // it is ready
	return err
}

func (p *peerProgram) do(ctx context.Context, q peer.Request) (peer.Reply, error) {
	if err := json.NewEncoder(p.worker.in).Encode(q); err != nil {
		return peer.Reply{}, p.failed(err)
	}
	return p.receive(ctx)
}

// receive reads an answer. A program that does not answer in time is ended.
func (p *peerProgram) receive(ctx context.Context) (peer.Reply, error) {
	var r peer.Reply
	received := make(chan error, 1)
	go func() { received <- p.worker.out.Decode(&r) }()
	select {
	case err := <-received:
		if err != nil {
			return r, p.failed(err)
		}
		return r, r.Err()
	case <-ctx.Done():
		err := p.worker.cmd.Process.Kill()
		return peer.Reply{}, errors.Join(context.Cause(ctx), err, <-received)
	}
}

// failed adds what a program has printed.
func (p *peerProgram) failed(err error) error {
	if p.worker.cmd.ProcessState == nil {
		err = errors.Join(err, p.worker.cmd.Process.Kill(), waited(p.worker.cmd))
	}
	text := p.worker.printed.Bytes()
	return fmt.Errorf("%w: %s", err, text[max(0, len(text)-500):])
}

func (p *peerProgram) kill() error {
	return errors.Join(p.worker.cmd.Process.Kill(), waited(p.worker.cmd))
}

// waited waits for the end of a process, however it ends.
func waited(cmd *exec.Cmd) error {
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}

func (p *peerProgram) stop(ctx context.Context) error {
	var err error
	if w := p.worker; w != nil && w.cmd.ProcessState == nil {
		err = endInput(ctx, w)
	}
	p.worker = nil
	if p.server != nil {
		err = errors.Join(err, p.server.stop(ctx))
	}
	return err
}

// endInput ends a program by the end of its input, or by SIGKILL if that has no effect.
func endInput(ctx context.Context, w *process) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	err := w.in.Close()
	ended := make(chan error, 1)
	go func() { ended <- w.cmd.Wait() }()
	select {
	case failed := <-ended:
		if failed != nil {
			text := w.printed.Bytes()
			failed = fmt.Errorf("end the worker: %w: %s", failed, text[max(0, len(text)-500):])
		}
		return errors.Join(err, failed)
	case <-ctx.Done():
		err = errors.Join(err, errors.New("the worker did not end"), w.cmd.Process.Kill())
		return errors.Join(err, <-ended)
	}
}

func (p *peerProgram) processes() []int {
	pids := []int{p.worker.cmd.Process.Pid}
	if p.server != nil {
		pids = append(pids, p.server.processes()...)
	}
	return pids
}

func (p *peerProgram) stored() (map[string]int64, error) {
	var n int64
	var err error
	if p.server != nil {
		n, err = p.server.stored()
	} else {
		n, err = bytesIn(p.dir)
	}
	return map[string]int64{"database": n}, err
}
