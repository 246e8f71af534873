package gate

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/process"
)

const playing = "GATE_TEST_PLAYS"

func TestMain(m *testing.M) {
	if os.Getenv(playing) == "worker" {
		if err := work(os.Args[1], os.Args[2]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work makes calls whose supervisor is this process, until it is killed. Each has a file while it runs.
func work(dir, name string) error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	g := Open(dir, "here", Options{Worker: self, AtOnce: config.AtOnce{Host: 3}})
	ctx := context.Background()
	for i := 0; ; i++ {
		c := Call{ID: fmt.Sprintf("%s/%d", name, i), Delivery: 1, Role: "writer", Worker: self, Holder: self}
		no, err := g.Acquire(ctx, Need{Call: c})
		if err != nil {
			return err
		}
		if no != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		file := filepath.Join(dir, "running", strconv.Itoa(self.PID)+"-"+strconv.Itoa(i))
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return err
		}
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		if err := os.Remove(file); err != nil {
			return err
		}
		if err := g.Release(ctx, c); err != nil {
			return err
		}
		fmt.Println("made")
	}
}

// TestManyProcessesUseOneFile: workers that are killed at any moment, and a program that reads. No more calls run at
// once than may, the file is never damaged, and no place is lost.
func TestManyProcessesUseOneFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "running"), 0o700))
	kills := 6
	if *crowds {
		kills = 60
	}
	var made counter
	start := func(i int) *exec.Cmd {
		cmd := exec.Command(os.Args[0], dir, "w"+strconv.Itoa(i))
		cmd.Env, cmd.Stdout = append(os.Environ(), playing+"=worker"), &made
		require.NoError(t, cmd.Start())
		return cmd
	}
	workers := []*exec.Cmd{start(0), start(1)}
	reader := Open(dir, "here", Options{})
	for i := range kills {
		enough := made.Load() + 3 // calls before each kill
		for begin := time.Now(); time.Since(begin) < 150*time.Millisecond || made.Load() < enough; {
			require.Less(t, time.Since(begin), time.Minute, "no call was made")
			_, err := reader.Today()
			require.NoError(t, err)
			_, err = reader.Waiting()
			require.NoError(t, err)
		}
		w := workers[i%2]
		require.NoError(t, w.Process.Kill())
		require.Error(t, w.Wait())
		left, err := filepath.Glob(filepath.Join(dir, "running", strconv.Itoa(w.Process.Pid)+"-*"))
		require.NoError(t, err)
		for _, file := range left {
			require.NoError(t, os.Remove(file))
		}
		running, err := os.ReadDir(filepath.Join(dir, "running"))
		require.NoError(t, err)
		require.LessOrEqual(t, len(running), 3)
		workers[i%2] = start(2 + i)
	}
	for _, w := range workers {
		require.NoError(t, w.Process.Kill())
		require.Error(t, w.Wait())
	}
	require.Empty(t, reader.Damaged(time.Time{}))
	self, err := process.Self()
	require.NoError(t, err)
	last := Open(dir, "here", Options{AtOnce: config.AtOnce{Host: 3}})
	for i := range 3 {
		no, err := last.Acquire(t.Context(), Need{Call: Call{ID: fmt.Sprintf("last/%d", i), Delivery: 1, Holder: self}, Now: true})
		require.NoError(t, err)
		require.Nil(t, no)
	}
	require.Greater(t, made.Load(), int64(2*kills))
	t.Logf("%d calls through %d kills", made.Load(), kills)
}

// counter counts the calls that workers report.
type counter struct{ atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.Add(int64(bytes.Count(p, []byte("made"))))
	return len(p), nil
}
