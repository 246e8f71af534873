package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// TestKeptFilesHaveTheirOwnNames: a file of an operator is never replaced by another one.
func TestKeptFilesHaveTheirOwnNames(t *testing.T) {
	d, folder := At(t.TempDir()), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "notes"), 0o700))
	file := filepath.Join(folder, "notes", "a.txt")
	for _, want := range []string{"notes/a.txt", "notes/a.txt~2", "notes/a.txt~3"} {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o200))
		to, err := d.KeepFile(folder, "notes/a.txt")
		require.NoError(t, err)
		require.Equal(t, EditsDir+"/"+want, to)
		text, err := d.ReadFile(to)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Symlink("/etc/passwd", file))
	to, err := d.KeepFile(folder, "notes/a.txt")
	require.NoError(t, err)
	text, err := d.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, "/etc/passwd", string(text))
}

// TestKeptFilesAreInTheFolder: a folder that was replaced by a link, or a pipe, leads nowhere and blocks nothing.
func TestKeptFilesAreInTheFolder(t *testing.T) {
	d, folder, outside := At(t.TempDir()), t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "key"), []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(folder, "link")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600))
	for _, name := range []string{"link/key", "pipe", "../" + filepath.Base(outside) + "/key"} {
		_, err := d.KeepFile(folder, name)
		require.Error(t, err, name)
	}
	require.NoDirExists(t, d.Path(EditsDir))
	require.FileExists(t, filepath.Join(outside, "key"))
}

// TestPromotionsAreRecordedOnce, each as an event, and what an interrupted write left is kept.
func TestPromotionsAreRecordedOnce(t *testing.T) {
	d := At(t.TempDir())
	write(t, d, PromotionsFile, "")
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	promote := func(id, target string) {
		require.NoError(t, d.Promoting(t.Context(), noon, func() (run.DeliveryCompleted, error) {
			return run.DeliveryCompleted{ID: id, Action: "promote", Target: target}, nil
		}))
	}
	promote("a", "one")
	promote("a", "again")
	require.NoDirExists(t, d.Path(TornDir), "nothing was interrupted")
	f, err := os.OpenFile(d.Path(PromotionsFile), os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString("{")
	require.NoError(t, errors.Join(err, f.Close()))
	promote("b", "two")
	raw, err := d.ReadFile(PromotionsFile)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	require.Len(t, lines, 2)
	for i, want := range []string{"one", "two"} {
		e, err := run.ParseLine(lines[i])
		require.NoError(t, err)
		require.Equal(t, run.Event{Seq: int64(i + 1), TS: "2026-01-02T12:00:00.000Z", Kind: run.KindDeliveryCompleted,
			Phase: new("delivery"), Payload: e.Payload}, run.Event{Seq: e.Seq, TS: e.TS, Kind: e.Kind, Phase: e.Phase,
			Payload: e.Payload})
		p, err := Promotion(lines[i])
		require.NoError(t, err)
		require.Equal(t, want, p.Target)
	}
	torn, err := d.ReadFile(TornDir + "/promotions-after-1-" + disk.Digest([]byte("{"))[:8] + ".txt")
	require.NoError(t, err)
	require.Equal(t, "{", string(torn))
	stop := errors.New("stop")
	require.ErrorIs(t, d.Promoting(t.Context(), noon, func() (run.DeliveryCompleted, error) {
		return run.DeliveryCompleted{ID: "c"}, stop
	}), stop)
	past, err := d.Promotions()
	require.NoError(t, err)
	require.Len(t, past, 2, "a copy that failed is not a promotion")
}

// TestOwnerOfFiles finds the run whose files are here without its claim.
func TestOwnerOfFiles(t *testing.T) {
	w := &writer{t: t}
	w.add(run.KindRunStart, run.RunStart{RunID: "journal"})
	none := &writer{t: t}
	state := func(id string) string {
		s := NewState()
		s.RunID, s.StartedAt = id, "2026-01-02T03:04:05.000Z"
		raw, err := json.Marshal(s)
		require.NoError(t, err)
		return string(raw)
	}
	meta, owner, old := `{"run_id":"meta"}`, `{"run_id":"owner"}`, state("state")
	require.Equal(t, "journal", leftBy(w.dir(map[string]string{MetaFile: meta, OwnerFile: owner})))
	require.Equal(t, "meta", leftBy(none.dir(map[string]string{MetaFile: meta, OwnerFile: owner})))
	require.Equal(t, "meta", leftBy(none.dir(map[string]string{EventsFile: "{}\n", MetaFile: meta})))
	unnamed := &writer{t: t}
	unnamed.add(run.KindRunStart, run.RunStart{})
	require.Equal(t, "meta", leftBy(unnamed.dir(map[string]string{MetaFile: meta})))
	require.Equal(t, "owner", leftBy(none.dir(map[string]string{OwnerFile: owner, StateFile: old})))
	require.Equal(t, "owner", leftBy(none.dir(map[string]string{MetaFile: "{}", OwnerFile: owner})))
	require.Equal(t, "state", leftBy(none.dir(map[string]string{StateFile: old})))
	require.Equal(t, "state", leftBy(none.dir(map[string]string{OwnerFile: "{}", StateFile: old})))
	require.Empty(t, leftBy(none.dir(map[string]string{StateFile: "{"})))
	require.Empty(t, leftBy(none.dir(map[string]string{})))

	strange := func(claimed string, files map[string]string) error {
		if claimed != "" {
			files[ClaimFile] = `{"run_id":"` + claimed + `"}`
		}
		return Strange(w.dir(files), Meta{RunID: "meta"})
	}
	require.ErrorIs(t, strange("journal", map[string]string{}), disk.ErrDamaged)
	require.ErrorContains(t, strange("journal", map[string]string{}), "it is of run meta")
	require.NoError(t, strange("meta", map[string]string{}))
	require.NoError(t, strange("other", map[string]string{}), "the claim may be the one of another run")
	require.NoError(t, strange("", map[string]string{}))
	claimed := w.dir(map[string]string{ClaimFile: `{"run_id":"journal"}`})
	require.NoError(t, Strange(claimed, Meta{}))

	claim := run.Claim{RunID: "r", Pipeline: "p", CreatedAt: "2026-01-01T00:00:00.000Z"}
	for want, files := range map[string]map[string]string{
		"archives/run-r-2026-01-01T00-00-00-000Z": {},
		"archives/run-r-2026-01-02T03-04-05-000Z": {StateFile: state("r")},
		"archives/run-r-earlier":                  {ArchivesDir + "/run-r-earlier/x": "", StateFile: old},
	} {
		name, err := archiveName(none.dir(files), claim)
		require.NoError(t, err)
		require.Equal(t, "_orchestrator/"+want, name)
	}
	for _, files := range []map[string]string{{ArchivesDir + "/run-other-x/x": ""},
		{StateFile: strings.Replace(state("r"), "2026-01-02T03:04:05.000Z", "", 1)}} {
		name, err := archiveName(none.dir(files), claim)
		require.NoError(t, err)
		require.Equal(t, "_orchestrator/archives/run-r-2026-01-01T00-00-00-000Z", name)
	}
	_, err := archiveName(none.dir(map[string]string{ArchivesDir: ""}), claim)
	require.Error(t, err)
}

// blobStore is a store in memory.
type blobStore map[string][]byte

func (b blobStore) Get(_ context.Context, digest string) ([]byte, error) {
	if raw, ok := b[digest]; ok {
		return raw, nil
	}
	return nil, fs.ErrNotExist
}

func (b blobStore) Put(_ context.Context, data []byte) (string, error) {
	b[disk.Digest(data)] = data
	return disk.Digest(data), nil
}
func (b blobStore) Name(context.Context, string, []byte) error { return nil }
func (b blobStore) Manifest(ctx context.Context, tree string) ([]byte, error) {
	return b.Get(ctx, tree)
}
func (b blobStore) LayDown(context.Context, string, string) error { return nil }
func (b blobStore) PutTree(context.Context, []byte) error         { return nil }
