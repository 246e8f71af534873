package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFilesOfAnotherUserNameTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("changing the owner needs root")
	}
	state := t.TempDir()
	require.NoError(t, os.Chown(state, 1, -1))
	denied := func(path string) error {
		return fmt.Errorf("x: %w", &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission})
	}
	require.Regexp(t, `^\. It belongs to user \S+: run the command as \S+, or set PASSBOOK_STATE_DIR`,
		hint(denied(filepath.Join(state, "console", "address")), state))
	require.Empty(t, hint(denied("/etc/shadow"), state))
	require.Empty(t, hint(&fs.PathError{Op: "open", Path: filepath.Join(state, "x"), Err: fs.ErrNotExist}, state))
}
