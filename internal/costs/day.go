package costs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// day is one file, as far as it was read.
type day struct {
	name    string
	size    int64       // that was read
	info    fs.FileInfo // of the file then
	rows    []row
	records []*record
	byKey   map[key]*record
	damage  []Damage
	lost    int  // lines that cannot be read
	short   bool // it lacks what was read before
	torn    bool // an interrupted write left the beginning of a line
}

// load returns a day. What was read before is not read again.
func (l *Ledger) load(name string) (*day, error) {
	d := l.days[name]
	f, err := os.Open(l.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		if d != nil && len(d.rows) > 0 {
			d.short = true
			return d, nil
		}
		return newDay(name), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger of costs: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the ledger of costs: %w", errors.Join(err, f.Close()))
	}
	d, err = l.reload(d, name, f, info)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read the ledger of costs %s: %w", l.path(name), err)
	}
	return d, nil
}

// reload reads what a file has beyond what was read before.
func (l *Ledger) reload(d *day, name string, f *os.File, info fs.FileInfo) (*day, error) {
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file; move it away")
	}
	same := d != nil && !d.damaged() && d.info != nil && os.SameFile(d.info, info)
	fresh := newDay(name)
	if same && d.size <= info.Size() {
		fresh = d // it has only grown
	}
	if err := fresh.read(f, info); err != nil {
		return nil, err
	}
	fresh.short = d != nil && len(d.rows) > len(fresh.rows)
	if fresh.short {
		d.short = true // what was read before counts until the file is restored
		return d, nil
	}
	l.days[name] = fresh
	return fresh, nil
}

func newDay(name string) *day { return &day{name: name, byKey: map[key]*record{}} }

// Damages returns the damage of the files since a time.
func (l *Ledger) Damages(since time.Time) ([]Damage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	names, err := l.names(since)
	if err != nil {
		return nil, err
	}
	var out []Damage
	for _, name := range names {
		d, err := l.load(name)
		if err != nil {
			return nil, err
		}
		out = append(out, d.damage...)
		if d.damaged() {
			out = append(out, Damage{Day: name, File: l.path(name), Lines: d.lost, Open: true})
		}
	}
	return out, nil
}

// damaged reports whether lines of the file are lost.
func (d *day) damaged() bool { return d.lost > 0 || d.short }

// read reads what follows the part that was read before.
func (d *day) read(f *os.File, info fs.FileInfo) error {
	data, err := io.ReadAll(io.NewSectionReader(f, d.size, info.Size()-d.size))
	if err != nil {
		return err
	}
	all, rest := lines(data)
	if d.torn = len(rest) > 0; info.Size() == 0 {
		d.lost++ // a file is created with its first line
	}
	next := len(d.rows) + 1
	for _, line := range all {
		r, err := decode(line)
		if errors.Is(err, errNewer) {
			return err
		}
		if err != nil {
			d.lost, next = d.lost+1, next+1
			continue
		}
		d.lost += max(0, r.N-next)
		next = r.N + 1
		d.apply(r)
	}
	d.size, d.info = info.Size()-int64(len(rest)), info
	return nil
}

// apply adds a row.
func (d *day) apply(r row) {
	d.rows = append(d.rows, r)
	at, err := time.Parse(run.TimeFormat, r.At)
	if err != nil {
		return // decode has checked it
	}
	of := d.byKey[r.Of]
	switch r.Kind {
	case kindReserved:
		if d.byKey[r.Call.key()] == nil {
			rec := &record{Call: *r.Call, At: at}
			d.byKey[r.Call.key()] = rec
			d.records = append(d.records, rec)
		} else {
			rec := d.byKey[r.Call.key()]
			rec.released, rec.Worker = false, r.Call.Worker
		}
	case kindDamaged:
		d.damage = append(d.damage, *r.Damage)
	case kindCost:
		if of != nil && !of.has(r.Part) {
			of.parts = append(of.parts, part{r.Part, r.Spend})
		}
	case kindReleased:
		if of != nil {
			of.released = true
		}
	case kindLost:
		if of != nil {
			of.lost = true
		}
	}
}

// add writes rows to a day. The ledger is locked. After a power failure it may lack rows that are not reservations: the
// next program that reads it finds them in the store again.
func (l *Ledger) add(d *day, rows ...row) error {
	if d.info == nil {
		return l.rewrite(d, rows) // at once: an empty file is a damaged one
	}
	if d.torn {
		if err := l.rewrite(d, d.rows); err != nil {
			return err
		}
	}
	var data []byte
	for i := range rows {
		rows[i].N, rows[i].Version = len(d.rows)+i+1, version
		line, err := encode(rows[i])
		if err != nil {
			return err
		}
		data = append(data, line...)
	}
	reserved := slices.ContainsFunc(rows, func(r row) bool { return r.Kind == kindReserved })
	sizes, err := l.opt.Disk.AppendAll([]disk.Addition{{Path: l.path(d.name), Offset: d.size, Data: data, Perm: 0o600,
		Unsynced: !reserved}})
	if err != nil {
		delete(l.days, d.name) // read it again
		return fmt.Errorf("write the ledger of costs: %w", err)
	}
	for _, r := range rows {
		d.apply(r)
	}
	d.size = sizes[0]
	if info, err := os.Stat(l.path(d.name)); err == nil {
		d.info = info
	}
	l.days[d.name] = d
	return nil
}

// rewrite replaces the file of a day by rows. The file that was there stays in the folder damaged.
func (l *Ledger) rewrite(d *day, rows []row) error {
	kept, err := l.keepDamaged(d.name)
	if err != nil {
		return err
	}
	fresh := newDay(d.name)
	var data []byte
	for i, r := range rows {
		if r.N, r.Version = i+1, version; r.Kind == kindDamaged && r.Damage.File == "" {
			r.Damage.File = kept
		}
		line, err := encode(r)
		if err != nil {
			return err
		}
		data = append(data, line...)
		fresh.apply(r)
	}
	if err := l.opt.Disk.WriteFile(l.path(d.name), data, 0o600); err != nil {
		return fmt.Errorf("write the ledger of costs: %w", err)
	}
	fresh.size = int64(len(data))
	info, err := os.Stat(l.path(d.name))
	if err != nil {
		return err
	}
	fresh.info = info
	*d = *fresh
	l.days[d.name] = d
	return nil
}

// keepDamaged copies the file of a day to the folder damaged, and returns the path of the copy; empty: no file.
func (l *Ledger) keepDamaged(name string) (string, error) {
	data, err := os.ReadFile(l.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("keep the damaged ledger of costs: %w", err)
	}
	for n := 1; ; n++ {
		path := filepath.Join(l.dir, damaged, fmt.Sprintf("%s.%d%s", name, n, suffix))
		won, err := l.opt.Disk.CreateNew(disk.File{Path: path, Data: data, Perm: 0o600, DirPerm: 0o700})
		if err != nil {
			return "", fmt.Errorf("keep the damaged ledger of costs: %w", err)
		}
		if won {
			return path, nil
		}
		if other, err := os.ReadFile(path); err == nil && string(other) == string(data) {
			return path, nil // an interrupted attempt has kept it
		}
	}
}
