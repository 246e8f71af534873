package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFilesForCallsFollowNoLink: an agent has replaced folders and files by links and others. Nothing outside, and no
// other file of the folder, is written.
func TestFilesForCallsFollowNoLink(t *testing.T) {
	for name, plant := range map[string]func(t *testing.T, dir, outside string){
		"nothing": func(*testing.T, string, string) {},
		"a link to a folder": func(t *testing.T, dir, outside string) {
			require.NoError(t, os.Symlink(outside, filepath.Join(dir, "config")))
		},
		"a link below": func(t *testing.T, dir, outside string) {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "config"), 0o700))
			require.NoError(t, os.Symlink(outside, filepath.Join(dir, "config/of")))
		},
		"a link to a folder inside": func(t *testing.T, dir, _ string) {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "src/of"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "src/of/.env"), []byte("mine"), 0o600))
			require.NoError(t, os.Symlink("src", filepath.Join(dir, "config")))
		},
		"a link to a file": func(t *testing.T, dir, outside string) {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "config/of"), 0o700))
			require.NoError(t, os.Symlink(filepath.Join(outside, "of/.env"), filepath.Join(dir, "config/of/.env")))
		},
		"a folder": func(t *testing.T, dir, _ string) {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "config/of/.env/x"), 0o700))
		},
		"a file in the place of a folder": func(t *testing.T, dir, _ string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "config"), []byte("mine"), 0o600))
		},
		"a file without permissions": func(t *testing.T, dir, _ string) {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "config/of"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "config/of/.env"), nil, 0o400))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, outside, source := t.TempDir(), t.TempDir(), t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(outside, "of"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(outside, "of/.env"), []byte("mine"), 0o600))
			require.NoError(t, os.MkdirAll(filepath.Join(source, "config/of"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(source, "config/of/.env"), []byte("TOKEN=x"), 0o400))
			plant(t, dir, outside)
			require.NoError(t, copyIncluded(source, dir, "config/of/.env"))
			path := filepath.Join(dir, "config/of/.env")
			info, err := os.Lstat(path)
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o400), info.Mode())
			real, err := filepath.EvalSymlinks(path)
			require.NoError(t, err)
			require.Equal(t, path, real)
			for _, mine := range []string{filepath.Join(outside, "of/.env"), filepath.Join(dir, "src/of/.env")} {
				if text, err := os.ReadFile(mine); err == nil {
					require.Equal(t, "mine", string(text))
				}
			}
			left, err := os.ReadDir(outside)
			require.NoError(t, err)
			require.Len(t, left, 1)
		})
	}
}

func TestSecretsInIncludedFiles(t *testing.T) {
	require.Equal(t, []string{"TOKEN_SECRET=abc-123-def", "key_SECRET=p4ssw0rd!"}, secretsIn(
		"TOKEN=abc-123-def\n# NOTE=abc-456-def\nWORD=development\nPORT=12345678\nSHORT=a-1\n\"key\": \"p4ssw0rd!\",\nnothing\n"))
}
