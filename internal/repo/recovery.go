package repo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/durable"
)

// listFile is the list of a backup; a backup without it was interrupted before anything was changed.
const listFile = "list.json"

// savedFileRecord is the stored form of a savedFile. Paths are relative to the checkout, and bytes, as they may not be
// UTF-8.
type savedFileRecord struct {
	Path   []byte      `json:"path"`
	Absent bool        `json:"absent"`
	Mode   fs.FileMode `json:"mode"`
	Time   time.Time   `json:"time"`
	Link   []byte      `json:"link"`
	Copied string      `json:"copied"` // name in the backup's folder
}

// backupRecord is the stored form of a backup.
type backupRecord struct {
	Files  []savedFileRecord `json:"files"`
	Absent [][]byte          `json:"absent_folders"`
	Made   []string          `json:"made"`
}

func (b *backup) writeList() error {
	l := backupRecord{Made: b.made}
	for _, f := range b.files {
		one := savedFileRecord{
			Path: []byte(b.relative(f.path)), Absent: f.absent, Mode: f.mode, Time: f.time, Link: []byte(f.link),
		}
		if f.copied != "" {
			one.Copied = filepath.Base(f.copied)
		}
		l.Files = append(l.Files, one)
	}
	for _, folder := range b.absent {
		l.Absent = append(l.Absent, []byte(b.relative(folder)))
	}
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return durable.Disk{}.WriteFile(filepath.Join(b.dir, listFile), raw, 0o600)
}

func (b *backup) relative(path string) string {
	return strings.TrimPrefix(path, b.root+string(filepath.Separator))
}

// loadBackup reads a backup in dir; nil: there is no valid one.
func loadBackup(root, dir string) (*backup, error) {
	raw, err := os.ReadFile(filepath.Join(dir, listFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, os.RemoveAll(dir)
	}
	var l backupRecord
	if err == nil {
		err = json.Unmarshal(raw, &l)
	}
	if err != nil {
		return nil, fmt.Errorf("read the backup of a delivery in %s: %w", dir, err)
	}
	b := &backup{root: root, dir: dir, made: l.Made}
	for _, one := range l.Files {
		f := savedFile{
			path: filepath.Join(root, string(one.Path)), absent: one.Absent, mode: one.Mode, time: one.Time,
			link: string(one.Link),
		}
		if one.Copied != "" {
			f.copied = filepath.Join(dir, one.Copied)
		}
		b.files = append(b.files, f)
	}
	for _, folder := range l.Absent {
		b.absent = append(b.absent, filepath.Join(root, string(folder)))
	}
	return b, nil
}

// backupOf returns the folder of the backup while a patch is applied.
func (r *Repo) backupOf(patch []byte) string {
	sum := sha256.Sum256(patch)
	return filepath.Join(r.gitDir, "passbook-apply", hex.EncodeToString(sum[:12]))
}

// recoverApply restores the files after an interrupted Apply of this patch. A file that was changed since is a
// [*ConflictError] and is kept.
func (r *Repo) recoverApply(ctx context.Context, patch []byte) error {
	b, err := loadBackup(r.root, r.backupOf(patch))
	if err != nil || b == nil {
		return err
	}
	if applied, err := r.applied(ctx, patch); err == nil && applied { // interrupted after the last step
		return b.drop()
	}
	strange, err := r.unknownFiles(ctx, b)
	if err != nil {
		return err
	}
	if len(strange) > 0 {
		return &ConflictError{Paths: strange,
			Message: "applying the patch was interrupted and these files were changed " +
				"since; their previous content is in " +
				b.dir + ": restore them manually, then remove that folder"}
	}
	if err := b.restore(); err != nil {
		return fmt.Errorf("restore the files from %s: %w", b.dir, err)
	}
	return b.drop()
}

// unknownFiles returns the files that are neither as before nor as after the patch. Git rewrites files: one may be
// missing or empty.
func (r *Repo) unknownFiles(ctx context.Context, b *backup) ([]string, error) {
	var all []string
	for _, f := range b.files {
		ours, err := f.restorable()
		if err != nil {
			return nil, err
		}
		if ours {
			continue
		}
		path := b.relative(f.path)
		ids, err := r.contents(ctx, []string{path}, nil)
		if err != nil {
			return nil, err
		}
		if len(ids) == 0 || !slices.Contains(b.made, ids[0]) {
			all = append(all, path)
		}
	}
	return all, nil
}

// restorable reports whether a path is unchanged, missing, or empty.
func (f savedFile) restorable() (bool, error) {
	if same, err := f.unchanged(); err != nil || same {
		return same, err
	}
	info, err := os.Lstat(f.path)
	if isAbsent(err) {
		return true, nil
	}
	return err == nil && info.Mode().IsRegular() && info.Size() == 0, err
}
