package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store/fakes3"
	"github.com/passbook-run/passbook/run"
)

// TestStoreOnS3 keeps everything in a bucket: the run outlives its worker and its directory, and nothing is kept on
// the machine.
func TestStoreOnS3(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_STORE="+fakes3.Start(t), "PASSBOOK_CONTINUE_AFTER=5")
	h.spoil(slow("5", "600"))
	dir := h.dir("run")
	h.begin(dir)
	h.mid("005")
	h.crash(h.worker())
	h.finish(dir)
	h.undisturbed(dir, 1)
	require.Equal(t, 2, h.count("start", "005"))
	require.NoDirExists(t, filepath.Join(h.state(), "store"))

	whole, id := tree(t, dir), metaOf(t, dir).RunID
	require.NoError(t, os.RemoveAll(dir))
	h.starter("rebuild", id, "--output-dir", dir)
	sameTree(t, whole, tree(t, dir))
	require.True(t, statusIs(dir, run.Done))
}

// TestMissingBucket: a start with a bucket that does not exist is refused, and writes nothing.
func TestMissingBucket(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_STORE="+strings.Replace(fakes3.Start(t), "s3://passbook?", "s3://nowhere?", 1))
	output, code := h.try("run", "--config", tiny(), "--output-dir", h.dir("run"))
	require.NotZero(t, code)
	require.Contains(t, output, "bucket does not exist")
	require.NoFileExists(t, h.dir("run/events.jsonl"))
}
