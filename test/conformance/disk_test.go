package conformance

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// fullRun is made on a disk of its own, which fills up, and later cannot be written at all.
var fullRun = &shared{make: makeFull}

// ordeal is what was seen meanwhile.
var ordeal struct {
	full, locked glimpse
	refused      struct {
		output string
		code   int
		calls  int
	}
}

// glimpse is a run directory while its disk takes nothing.
type glimpse struct {
	before, after map[string]string // its files before the disk went, and while it was away
	state         string
	temps         []string
	output        string // what the worker says
}

func makeFull(t *testing.T) result {
	if os.Getuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("a disk of its own can only be mounted by root, on Linux")
	}
	disk := filepath.Join(base, "disk")
	require.NoError(t, os.MkdirAll(disk, 0o755))
	require.NoError(t, mount("-t", "tmpfs", "-o", "size=12m", "passbook-conformance", disk))
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", "-l", disk).Run()) })
	refuse(t, disk)
	spoil(t, "- {at: 3, do: slow, seconds: 3}\n- {at: 6, do: slow, seconds: 3}")
	r := result{dir: filepath.Join(disk, "run")}
	starter(t, "run", "--config", example("corpus-tiny.yaml"), "--output-dir", r.dir, "--detach")

	begun(t, r, 3)
	ballast := filepath.Join(disk, "ballast")
	// of the projection after which the run pauses: the one before it is part of a turn
	ordeal.full = suffer(t, r, "ActivityType=Project .*no space left on device", func() { fill(t, ballast) })
	require.NoError(t, os.Remove(ballast))
	until(t, "the run says that it rests for want of room",
		func() bool { return r.state(t)["phaseReason"] == "disk-full" })
	starter(t, "resume", r.dir)

	begun(t, r, 6)
	ordeal.locked = suffer(t, r, "read-only file system", func() {
		until(t, "the disk is read-only", func() bool { return mount("-o", "remount,ro", disk) == nil })
	})
	require.NoError(t, mount("-o", "remount,rw", disk))
	r.output = starter(t, "run", "--config", example("corpus-tiny.yaml"), "--output-dir", r.dir)
	return keep(t, r)
}

// keep copies the directory off the disk, which goes away with the row that asked for it.
func keep(t *testing.T, r result) result {
	t.Helper()
	copied := result{dir: filepath.Join(base, "full"), output: r.output}
	require.NoError(t, os.CopyFS(copied.dir, os.DirFS(r.dir)))
	return copied
}

func mount(args ...string) error { return exec.Command("mount", args...).Run() }

// refuse tries to start a run where nothing can be written.
func refuse(t *testing.T, disk string) {
	t.Helper()
	spoil(t, "[]")
	require.NoError(t, mount("-o", "remount,ro", disk))
	from := len(calls(t, 0))
	ordeal.refused.output, ordeal.refused.code = try(t, "run", "--config", example("corpus-tiny.yaml"), "--output-dir",
		filepath.Join(disk, "run"))
	ordeal.refused.calls = len(calls(t, from))
	require.NoError(t, mount("-o", "remount,rw", disk))
}

// begun waits until a pass runs, as state.json says.
func begun(t *testing.T, r result, n int) {
	t.Helper()
	until(t, "pass "+padded(n)+" runs", func() bool {
		raw, err := os.ReadFile(r.path(statePathIn))
		if err != nil {
			return false
		}
		running, _ := parse(t, raw)["inFlightPass"].(map[string]any)
		return running["globalPassNumber"] == float64(n)
	})
}

// suffer takes the disk away during a pass, waits until the worker has met that, and looks at what is there.
func suffer(t *testing.T, r result, complaint string, take func()) glimpse {
	t.Helper()
	m := glimpse{before: tree(t, r.dir)}
	met := func() int { return len(regexp.MustCompile(complaint).FindAllString(workerLog(t), -1)) }
	already := met()
	take()
	until(t, "the worker meets: "+complaint, func() bool { return met() > already })
	m.output, m.after = workerLog(t), map[string]string{}
	_ = filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			raw, _ := os.ReadFile(path)
			name, _ := filepath.Rel(r.dir, path)
			m.after[name] = digest(raw)
		}
		return nil
	})
	until(t, "temporary files are gone", func() bool {
		m.temps, _ = filepath.Glob(r.path("_orchestrator/*.tmp.*"))
		return len(m.temps) == 0
	})
	m.state = string(r.file(t, statePathIn))
	return m
}

func workerLog(t *testing.T) string {
	t.Helper()
	return string(read(t, rowsEnv.workerLog()))
}

// fill takes all the space that is left.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	require.NoError(t, err)
	defer f.Close()
	_, err = io.Copy(f, zeros{})
	for size := 4096; size > 0; size /= 2 {
		for err = nil; err == nil; _, err = f.Write(make([]byte, size)) {
		}
	}
	var path *fs.PathError
	require.True(t, errors.As(err, &path), "%v", err)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
