package conformance

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// lanes is the number of scripts that run at once, each in its own environment.
const lanes = 4

var (
	rowsEnv *env      // of TestRows and the other tests of its runs
	lostEnv *env      // loses its state directory
	free    chan *env // environments that no script is using
)

// createEnvs creates all environments and returns them. Their servers start when a test needs them.
func createEnvs() ([]*env, error) {
	newEnv := func(name string) *env { return &env{dir: filepath.Join(base, "env", name)} }
	rowsEnv, lostEnv, free = newEnv("rows"), newEnv("lost"), make(chan *env, lanes)
	all := []*env{rowsEnv, lostEnv}
	for i := range lanes {
		e := newEnv("lane-" + strconv.Itoa(i+1))
		free <- e
		all = append(all, e)
	}
	for _, e := range all {
		if err := e.create(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// takeEnv waits for a free environment and starts its server and worker. The caller returns it with giveBack, even
// after an error.
func takeEnv() (*env, error) {
	e := <-free
	if err := os.RemoveAll(e.callLog()); err != nil {
		return e, err
	}
	if err := e.setFaults("[]\n"); err != nil {
		return e, err
	}
	if err := e.start(); err != nil {
		return e, err
	}
	log, err := os.ReadFile(e.workerLog())
	e.logSize = len(log)
	return e, err
}

// giveBack makes an environment free for the next test. After a failure a run may still be active in it, so it is
// stopped and created anew.
func giveBack(t testing.TB, e *env) {
	defer func() { free <- e }()
	if !t.Failed() {
		return
	}
	for _, step := range []func() error{e.stop, func() error { return os.RemoveAll(e.dir) }, e.create} {
		if err := step(); err != nil {
			t.Errorf("reset environment %s: %v", e.dir, err)
		}
	}
}
