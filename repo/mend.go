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

	"github.com/passbook-run/passbook/durable"
)

// listFile is the list of a backup; a backup without it was cut off before anything was changed.
const listFile = "list.json"

// listed is a savedFile on disk. Paths are relative to the checkout, and bytes: they need not be UTF-8.
type listed struct {
	Path   []byte      `json:"path"`
	Absent bool        `json:"absent"`
	Mode   fs.FileMode `json:"mode"`
	Time   time.Time   `json:"time"`
	Link   []byte      `json:"link"`
	Copied string      `json:"copied"` // name in the backup's folder
}

// list is a backup on disk.
type list struct {
	Files  []listed `json:"files"`
	Absent [][]byte `json:"absent_folders"`
	Made   []string `json:"made"`
}

func (b *backup) writeList() error {
	l := list{Made: b.made}
	for _, f := range b.files {
		one := listed{Path: []byte(b.relative(f.path)), Absent: f.absent, Mode: f.mode, Time: f.time, Link: []byte(f.link)}
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

// loadBackup reads what save left in dir; nil: nothing that counts.
func loadBackup(root, dir string) (*backup, error) {
	raw, err := os.ReadFile(filepath.Join(dir, listFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, os.RemoveAll(dir)
	}
	var l list
	if err == nil {
		err = json.Unmarshal(raw, &l)
	}
	if err != nil {
		return nil, fmt.Errorf("read the copies that a delivery kept in %s: %w", dir, err)
	}
	b := &backup{root: root, dir: dir, made: l.Made}
	for _, one := range l.Files {
		f := savedFile{path: filepath.Join(root, string(one.Path)), absent: one.Absent, mode: one.Mode, time: one.Time, link: string(one.Link)}
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

// backupOf is where the files are kept that a patch changes, while it is applied.
func (r *Repo) backupOf(patch []byte) string {
	sum := sha256.Sum256(patch)
	return filepath.Join(r.gitDir, "passbook-apply", hex.EncodeToString(sum[:12]))
}

// mend puts back what an Apply of this patch that was cut off has changed. A file that somebody changed since is a [*ConflictError], and stays.
func (r *Repo) mend(ctx context.Context, patch []byte) error {
	b, err := loadBackup(r.root, r.backupOf(patch))
	if err != nil || b == nil {
		return err
	}
	if applied, err := r.applied(ctx, patch); err == nil && applied { // it was cut off behind its last step
		return b.drop()
	}
	strange, err := r.strange(ctx, b)
	if err != nil {
		return err
	}
	if len(strange) > 0 {
		return &ConflictError{Paths: strange, Said: "applying it was cut off, and these files were changed since; what they held before is kept in " +
			b.dir + ": mend them by hand, and remove that folder"}
	}
	if err := b.restore(); err != nil {
		return fmt.Errorf("put the files back as they were, from %s: %w", b.dir, err)
	}
	return b.drop()
}

// strange lists the files that are neither as they were nor as the patch makes them. Git writes files anew: one may be gone or empty.
func (r *Repo) strange(ctx context.Context, b *backup) ([]string, error) {
	var all []string
	for _, f := range b.files {
		ours, err := f.ours()
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

// ours says whether a path is as it was, gone, or empty.
func (f savedFile) ours() (bool, error) {
	if same, err := f.unchanged(); err != nil || same {
		return same, err
	}
	info, err := os.Lstat(f.path)
	if isAbsent(err) {
		return true, nil
	}
	return err == nil && info.Mode().IsRegular() && info.Size() == 0, err
}
