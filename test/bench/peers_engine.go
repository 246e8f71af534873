package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/test/bench/peer"
)

// engine is Passbook or a peer in a folder: its server or database, if it has one, and one worker.
type engine interface {
	// start starts everything. The first start of a folder also creates it.
	start(ctx context.Context) error
	// stop ends everything in order. Without a running process it does nothing.
	stop(ctx context.Context) error
	// kill ends the worker as kill -9 does, and rework starts it again.
	kill() error
	rework(ctx context.Context) error
	// do executes a request.
	do(ctx context.Context, q peer.Request) (peer.Reply, error)
	// processes are the roots of the process trees whose memory counts.
	processes() []int
	// stored is the number of bytes in the files of the stopped engine, by what they are.
	stored() (map[string]int64, error)
}

// contender is one column of the table.
type contender struct {
	name    string
	version string
	durable string // what the engine waits for before a step counts as done
	// agents: each step starts a program, also one that does nothing.
	agents bool
	// detection is the time after which the engine by its own settings takes a killed worker's call for lost.
	detection time.Duration
	// open prepares an engine in an empty folder. Its agents write to logs.
	open func(dir, logs string) engine
	// missing is why it cannot be measured here.
	missing error
}

// starts are the times at which the agents of a log have started.
type starts string

func (s starts) count() (int, error) {
	info, err := os.Stat(string(s))
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return int(info.Size() / logLine), nil
}

// logLine is the size of one line of the agent's log.
const logLine = 20

func (s starts) read() ([]time.Time, error) {
	data, err := os.ReadFile(string(s))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []time.Time
	for ; len(data) >= logLine; data = data[logLine:] {
		var n int64
		if _, err := fmt.Sscanf(string(data[:logLine]), "%d\n", &n); err != nil {
			return nil, fmt.Errorf("read %s: %w", string(s), err)
		}
		out = append(out, time.Unix(0, n))
	}
	return out, nil
}

// await waits until this number of agents has started, and returns the time at which the last of them did.
func (s starts) await(ctx context.Context, n int) (time.Time, error) {
	for {
		got, err := s.count()
		if err != nil {
			return time.Time{}, err
		}
		if got >= n {
			all, err := s.read()
			if err != nil {
				return time.Time{}, err
			}
			return all[n-1], nil
		}
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("wait for %d calls, %d have started: %w", n, got, context.Cause(ctx))
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// exactly checks that this number of agents has started, and no more.
func (s starts) exactly(n int) error {
	got, err := s.count()
	if err == nil && got != n {
		err = fmt.Errorf("%d calls were started; %d were expected", got, n)
	}
	return err
}

// bytesIn is the number of bytes in the files of folders.
func bytesIn(folders ...string) (n int64, err error) {
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			info, err := e.Info()
			if err == nil {
				n += info.Size()
			}
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			return 0, err
		}
	}
	return n, nil
}
