package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// half is the number of completed passes after which the demo kills a worker.
const half = 28

// demo runs the example on the cluster and on the embedded server, and compares the results. With kill, a worker is
// killed in the middle of the cluster's run and then restarted.
func demo(ctx context.Context, s settings, kill bool) error {
	if err := start(ctx, s); err != nil { // also restarts a worker that was killed earlier
		return err
	}
	all, err := s.records()
	if err != nil {
		return err
	}
	stamp := time.Now().Format("20060102-150405")
	killed := make(chan error, 1)
	there := filepath.Join(s.Dir, "runs", "cluster-"+stamp)
	watch, stop := context.WithCancel(ctx)
	defer stop()
	if kill {
		go func() { killed <- killInTheMiddle(watch, all, there) }()
	}
	on := s.passbook()
	on["TEMPORAL_ADDRESS"] = s.address()
	fmt.Println("On the cluster:")
	cluster, err := runDemo(ctx, s, environment(on), there)
	if err != nil {
		return err
	}
	stop()
	if kill {
		if err := <-killed; err != nil {
			return err
		}
		if err := start(ctx, s); err != nil { // as Docker does
			return err
		}
	}
	embedded, err := embeddedDemo(ctx, s, filepath.Join(s.Dir, "runs", "embedded-"+stamp))
	if err != nil {
		return err
	}
	fmt.Printf("sha256 of the page: %s on the cluster\n                    %s on the embedded server\n", cluster,
		embedded)
	if cluster != embedded {
		return errors.New("the pages differ")
	}
	fmt.Println("They are the same.")
	return nil
}

func embeddedDemo(ctx context.Context, s settings, dir string) (digest string, err error) {
	fmt.Println("On the embedded server:")
	env := environment(map[string]string{"PASSBOOK_STATE_DIR": filepath.Join(s.Dir, "embedded")})
	digest, err = runDemo(ctx, s, env, dir)
	stop := exec.Command(filepath.Join(s.Root, "bin", "starter"), "server", "stop")
	stop.Env = env
	return digest, errors.Join(err, stop.Run())
}

// runDemo returns the digest of the page.
func runDemo(ctx context.Context, s settings, env []string, dir string) (string, error) {
	began := time.Now()
	cmd := exec.CommandContext(ctx, filepath.Join(s.Root, "bin", "starter"), "demo", "--output-dir", dir)
	cmd.Env = env
	cmd.Dir = s.Dir
	output, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("starter demo: %w\n%s", err, output)
	}
	for line := range strings.Lines(string(output)) {
		if strings.HasPrefix(line, "Done:") {
			fmt.Printf("  %s\n  after %s, in %s\n", strings.TrimSpace(line),
				time.Since(began).Round(100*time.Millisecond), dir)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "artifact.html"))
	sum := sha256.Sum256(page)
	return hex.EncodeToString(sum[:]), err
}

// killInTheMiddle kills the first worker that makes a call after half of the passes are completed.
func killInTheMiddle(ctx context.Context, all []record, dir string) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return errors.New("no worker was seen at work in the second half of the run, so none was killed")
		case <-tick.C:
		}
		events, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
		if err != nil || bytes.Count(events, []byte(`"kind":"pass.end"`)) < half {
			continue
		}
		for _, r := range all {
			if strings.HasPrefix(r.Name, "worker-") && r.alive() && hasChild(r.PID) {
				fmt.Printf("  killing %s (pid %d) at its work, after %d passes\n", r.Name, r.PID, half)
				return r.signal(syscall.SIGKILL)
			}
		}
	}
}

// hasChild reports whether a process has a running child: a worker, an agent.
func hasChild(pid int) bool {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(tasks) == 0 {
		return exec.Command("pgrep", "-P", strconv.Itoa(pid)).Run() == nil
	}
	for _, task := range tasks {
		if children, err := os.ReadFile(task); err == nil && len(children) > 0 {
			return true
		}
	}
	return false
}
