package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
)

func TestVerifyRefusesDamagedContent(t *testing.T) {
	full := func(s durable.Step) error {
		if s.Op == durable.OpWrite {
			return durable.Torn{Bytes: 3}
		}
		return nil
	}
	// A disk that returns other bytes than were written.
	lies := func(s durable.Step) error {
		if s.Op == durable.OpReadBack {
			return os.WriteFile(s.Path, []byte(`{"v":9}`), 0o600)
		}
		return nil
	}
	tests := []struct {
		name   string
		data   string
		verify *durable.Verify
		hook   func(durable.Step) error
		want   string
	}{
		{"not JSON", `{"v":`, durable.VerifyState(), nil, durable.StateRefusal},
		{"disk full", `{"v":2}`, durable.VerifyState(), full, durable.StateRefusal},
		{"other bytes", `{"v":2}`, durable.VerifyState(), lies, durable.StateRefusal},
		{"other bytes, other text", `{"v":2}`, &durable.Verify{}, lies, "before it is replaced"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "state.json")
			require.NoError(t, os.WriteFile(path, []byte(`{"v":1}`), 0o600))
			err := durable.Disk{Hook: tt.hook}.WriteAll([]durable.File{{Path: path, Data: []byte(tt.data), Perm: 0o600,
				Verify: tt.verify}})
			require.ErrorContains(t, err, tt.want)
			refused := (*durable.VerifyError)(nil)
			require.ErrorAs(t, err, &refused)
			require.Equal(t, path, refused.Path)
			require.Equal(t, map[string]string{"state.json": `{"v":1}`}, look(t, dir))
		})
	}
}
