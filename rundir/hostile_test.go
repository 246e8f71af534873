package rundir_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/rundir"
)

var hostileSeeds = flag.Int("hostile.seeds", 25, "number of hostile run directories")

const canary = "canary-5f2d"

// hostileDir is a damaged copy of a run directory, beside a tree that nothing may touch or read.
type hostileDir struct {
	rundir.Dir
	above string
	rnd   *rand.Rand
	names []string // files and folders of the healthy directory
}

// canaryFiles are the files beside the run directory.
var canaryFiles = []string{"canary/artifact.html", "canary/meta.json", "canary/events.jsonl", "canary/logs/cost.jsonl",
	"canary/in/manifest.json"}

func (sc scene) hostile(t *testing.T, seed int) hostileDir {
	t.Helper()
	h := hostileDir{above: t.TempDir(), rnd: rand.New(rand.NewPCG(7, uint64(seed)))}
	h.Dir = rundir.At(filepath.Join(h.above, "run"))
	require.NoError(t, os.CopyFS(h.Root, os.DirFS(sc.dir.Root)))
	for _, name := range canaryFiles {
		file := filepath.Join(h.above, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(`{"`+canary+`":1}`+"\n"), 0o600))
	}
	h.names = []string{rundir.Orchestrator, rundir.LogsDir, rundir.PassesDir, rundir.CheckpointsDir, rundir.SnapshotsDir,
		rundir.DecisionsDir, rundir.TornDir, rundir.LockFile, rundir.ArchivesDir, rundir.InputsDir}
	for name := range sc.files {
		h.names = append(h.names, strings.TrimSuffix(name, "/"))
	}
	slices.Sort(h.names)
	return h
}

func pick[T any](h hostileDir, all []T) T { return all[h.rnd.IntN(len(all))] }

// cleared removes what has a name, and creates the folder above it.
func (h hostileDir) cleared(name string) string {
	p := h.Path(name)
	if fi, err := os.Stat(filepath.Dir(p)); err == nil && fi.IsDir() { // RemoveAll opens it, and waits for a FIFO
		_ = os.RemoveAll(p)
	}
	_ = os.MkdirAll(filepath.Dir(p), 0o700)
	return p
}

// attacks are the ways in which a directory is hostile. They do nothing where an earlier one has changed too much.
var attacks = []struct {
	name string
	do   func(h hostileDir, name string)
}{
	{"link to a file outside", func(h hostileDir, name string) {
		up := strings.Repeat("../", strings.Count(name, "/")+1)
		_ = os.Symlink(up+pick(h, canaryFiles), h.cleared(name))
	}},
	{"absolute link", func(h hostileDir, name string) {
		_ = os.Symlink(filepath.Join(h.above, pick(h, canaryFiles)), h.cleared(name))
	}},
	{"link to a folder outside", func(h hostileDir, name string) {
		_ = os.Symlink(filepath.Join(h.above, "canary"), h.cleared(name))
	}},
	{"link to itself", func(h hostileDir, name string) { _ = os.Symlink(path.Base(name), h.cleared(name)) }},
	{"FIFO", func(h hostileDir, name string) { _ = unix.Mkfifo(h.cleared(name), 0o600) }},
	{"socket", func(h hostileDir, name string) {
		if l, err := net.Listen("unix", h.cleared(name)); err == nil {
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			_ = l.Close()
		}
	}},
	{"device", func(h hostileDir, name string) {
		_ = unix.Mknod(h.cleared(name), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))) // /dev/zero; only root can
	}},
	{"folder", func(h hostileDir, name string) { _ = os.MkdirAll(h.cleared(name)+"/x/y", 0o700) }},
	{"sparse file", func(h hostileDir, name string) {
		p := h.Path(name)
		_ = os.Truncate(p, pick(h, []int64{1 << 40, 1<<30 + 1, 300 << 20, 70 << 20}))
	}},
	{"deep folders", func(h hostileDir, name string) {
		_ = os.MkdirAll(filepath.Join(h.Root, rundir.PassesDir, strings.Repeat("d/", 400)), 0o700)
	}},
	{"deep JSON", func(h hostileDir, name string) {
		_ = os.WriteFile(h.cleared(name), []byte(`{"events":`+strings.Repeat(`[`, 100_000)), 0o600)
	}},
	{"names that lead out", func(h hostileDir, name string) {
		to := pick(h, []string{"../canary/artifact.html", "../escaped.html", "/tmp/escaped-" + canary,
			"../../../canary/meta.json", "run.json", `a\u0000b`, "..", `x\n../canary`})
		from := pick(h, []string{"artifact.html", "conviction-layer.md", "cp-S1", "corpus/a.md", "critic", "judge",
			"screenshots/cycle-1", "h-1", "run-1"})
		_ = filepath.WalkDir(h.Root, func(p string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || !strings.Contains(path.Ext(p), "json") {
				return nil
			}
			if fi, err := e.Info(); err != nil || fi.Size() > 1<<20 {
				return nil
			}
			raw, err := os.ReadFile(p)
			if err == nil {
				_ = os.WriteFile(p, bytes.ReplaceAll(raw, []byte(`"`+from+`"`), []byte(`"`+to+`"`)), 0o600)
			}
			return nil
		})
	}},
	{"random bytes", func(h hostileDir, name string) {
		raw, err := disk.ReadFile(h.Path(name), 1<<20)
		if err != nil || len(raw) == 0 {
			return
		}
		for range 1 + h.rnd.IntN(20) {
			raw[h.rnd.IntN(len(raw))] = byte(h.rnd.IntN(256))
		}
		_ = os.WriteFile(h.Path(name), raw, 0o600)
	}},
	{"deleted", func(h hostileDir, name string) { h.cleared(name) }},
}

// TestHostileDirectories damages a run directory as an attacker would who wants its reader to touch, read or wait for
// something outside, and runs what reads and what repairs.
func TestHostileDirectories(t *testing.T) {
	sc := sceneOf(t, "run-1", "")
	for seed := range *hostileSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := sc.hostile(t, seed)
			did := ""
			for range 1 + h.rnd.IntN(3) {
				a, name := pick(h, attacks), pick(h, h.names)
				a.do(h, name)
				did += a.name + " at " + name + "; "
			}
			sc.survives(t, h, did)
		})
	}
}

// TestAttacksAreRefused puts each attack in the place of a sample of the names that a repair or a reader uses.
func TestAttacksAreRefused(t *testing.T) {
	sc := sceneOf(t, "run-1", "")
	names := []string{rundir.TornDir, rundir.LockFile, rundir.MetaFile, rundir.EventsFile, rundir.Orchestrator}
	for i, a := range attacks {
		for j, name := range names {
			if !*allDamages && (i+j)%2 != 0 {
				continue
			}
			t.Run(a.name+" at "+name, func(t *testing.T) {
				t.Parallel()
				h := sc.hostile(t, 1000+i*10+j)
				a.do(h, name)
				if name != rundir.EventsFile { // so that there is something to repair
					_ = os.Remove(h.Path(rundir.DeliveryPatch))
				}
				sc.survives(t, h, a.name+" at "+name)
			})
		}
	}
}

// TestNamesThatLeadOutAreDamage checks and repairs a directory whose first event names a file outside.
func TestNamesThatLeadOutAreDamage(t *testing.T) {
	sc := sceneOf(t, "run-1", "")
	h := sc.hostile(t, 0)
	raw, err := os.ReadFile(h.Path(rundir.EventsFile))
	require.NoError(t, err)
	raw = bytes.Replace(raw, []byte(`"artifact.html"`), []byte(`"../escaped.html"`), 1)
	require.NoError(t, os.WriteFile(h.Path(rundir.EventsFile), raw, 0o600))
	require.NoError(t, os.Remove(h.Path(rundir.MetaFile)))
	r, err := rundir.Check(t.Context(), h.Dir, rundir.CheckOptions{})
	require.NoError(t, err)
	require.Contains(t, codesOf(r), rundir.JournalDamaged)
	require.Contains(t, fmt.Sprint(r.Issues), "names no file of a run directory: line 1 of events.jsonl")
	sc.survives(t, h, "a name that leads out")
}

// TestHostileDirectoriesTakeNoMemory reads huge files in another process, and measures it.
func TestHostileDirectoriesTakeNoMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems count in another unit")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-damages.all", "-test.parallel", "1", "-test.run",
		"^TestAttacksAreRefused$/^(sparse|deep).*at_(meta.json|events.jsonl)$")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	require.True(t, ok)
	const most = 1 << 20 // KiB
	require.Less(t, used.Maxrss, int64(most))
}

// survives runs everything within a deadline, and wants what is outside to be as it was, and unread.
func (sc scene) survives(t *testing.T, h hostileDir, did string) {
	t.Helper()
	before := outside(t, h)
	done := make(chan string, 1)
	go func() { done <- sc.runAll(t, h) }()
	select {
	case output := <-done:
		require.NotContains(t, output, canary+`":1`, did)
	case <-time.After(time.Minute):
		require.FailNow(t, "it does not end", did)
	}
	require.Equal(t, before, outside(t, h), did)
	_ = filepath.WalkDir(h.Root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		if fi, err := e.Info(); err == nil && fi.Size() < 1<<20 {
			raw, _ := os.ReadFile(p)
			require.NotContains(t, string(raw), canary+`":1`, "%s: %s has what is outside", did, p)
		}
		return nil
	})
}

// runAll returns everything that the readers and the writers say.
func (sc scene) runAll(t *testing.T, h hostileDir) string {
	var output strings.Builder
	note := func(v any, err error) { fmt.Fprintf(&output, "%+v %v\n", v, err) }
	ctx := t.Context()
	note(h.Claim())
	note(h.Now())
	note(h.State())
	note(h.Plan())
	note(h.Owner())
	note(h.Decisions())
	note(h.Promotions())
	a, err := h.Artifact()
	note(string(a.Now)+string(a.Seed), err)
	rows, _, err := rundir.Rows[rundir.CostRow](h.Dir, rundir.CostLog)
	note(rows, err)
	note(h.Result(ctx, sc.story.blobs))
	note(rundir.ReadContents(h.Dir))
	note(rundir.Check(ctx, h.Dir, rundir.CheckOptions{ReadTree: readTree, Deep: sc.story.blobs}))
	note(rundir.Repair(ctx, h.Dir, rundir.RepairOptions{Apply: true, Blobs: sc.story.blobs,
		ReadTree: readTree}))
	note(rundir.Check(ctx, h.Dir, rundir.CheckOptions{ReadTree: readTree}))
	note(h.Rebuild(ctx, sc.story.blobs, sc.source()))
	note(h.Archive(ctx))
	return output.String()
}

// outside lists everything beside the run directory, with its bytes.
func outside(t *testing.T, h hostileDir) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(h.above, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == h.Root {
			return fs.SkipDir
		}
		all[p] = e.Type().String()
		if e.Type().IsRegular() {
			raw, err := os.ReadFile(p)
			require.NoError(t, err)
			all[p] += string(raw)
		}
		return nil
	}))
	_, err := os.Lstat("/tmp/escaped-" + canary)
	require.ErrorIs(t, err, fs.ErrNotExist)
	return all
}
