package disk_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
)

func TestVerifyRefusesDamagedContent(t *testing.T) {
	full := func(s disk.Step) error {
		if s.Op == disk.OpWrite {
			return disk.Torn{Bytes: 3}
		}
		return nil
	}
	// A disk that returns other bytes than were written.
	lies := func(s disk.Step) error {
		if s.Op == disk.OpReadBack {
			return os.WriteFile(s.Path, []byte(`{"v":9}`), 0o600)
		}
		return nil
	}
	tests := []struct {
		name string
		data string
		hook func(disk.Step) error
		want string
	}{
		{"not JSON", `{"v":`, nil, disk.StateRefusal},
		{"disk full", `{"v":2}`, full, disk.StateRefusal},
		{"other bytes", `{"v":2}`, lies, disk.StateRefusal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "state.json")
			require.NoError(t, os.WriteFile(path, []byte(`{"v":1}`), 0o600))
			err := disk.Disk{Hook: tt.hook}.WriteAll([]disk.File{{Path: path, Data: []byte(tt.data), Perm: 0o600,
				State: true}})
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, path)
			require.Equal(t, map[string]string{"state.json": `{"v":1}`}, look(t, dir))
		})
	}
}
