package fsck

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/object"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// judgeGrowing compares each growing file with its mark in meta.json. They only grow, so no writer can be the cause of
// a line that is lost.
func (x *examined) judgeGrowing() error {
	for _, m := range x.meta.typed.Derived {
		if !slices.Contains(records.Growing(), m.File) {
			continue
		}
		size := int64(-1) // it is missing
		if fi, err := x.dir.Stat(m.File); err == nil {
			size = fi.Size()
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		ends, err := journal.LineEnds(x.dir, m.File, max(0, m.Size))
		switch {
		case err != nil:
			return err
		case m.Size > max(0, size) || !ends:
			x.findIn(DerivedFileBehind, m.File, fmt.Sprintf("%s has no line that ends at byte %d", m.File, m.Size))
		case size < 0 && m.Seq > 0:
			x.lags(DerivedFileDamaged, m.File, m.File+" is missing")
		case m.Size >= 0:
			if err := x.judgeLog(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// judgeLog reads one growing file: the lines up to its mark in meta.json, and later lines. While lines of the
// journal are being written, rows may be too.
func (x *examined) judgeLog(m rundir.DerivedMark) error {
	f, err := journal.Open(x.dir, m.File, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var chain run.Chain
	var known, rest int64
	var bad places
	for line, err := range f.RawLines() {
		if err != nil {
			return fmt.Errorf("read %s: %w", x.dir.Path(m.File), err)
		}
		if line.End > m.Size {
			if _, ofStart := records.ParseStart(string(line.Bytes)); !ofStart || m.File != layout.DecisionsLog {
				rest++
			}
			continue
		}
		known, chain = line.Number, line.Chain(chain)
		if path.Ext(m.File) == ".jsonl" && !isRow(line.Bytes) {
			bad.add(line.Number)
		}
	}
	switch torn := len(f.Torn()); {
	case m.Chain != "" && chain != m.Chain:
		message := fmt.Sprintf("%s is not what was written: a line of its first %d was changed", m.File, known)
		if bad.n > 0 {
			message += fmt.Sprintf(", not a JSON object: %s", bad)
		}
		x.lags(DerivedFileDamaged, m.File, message)
	case bad.n > 0:
		x.lags(LogRowUnreadable, m.File, fmt.Sprintf("not a JSON object: %s of %s", bad, m.File))
	case torn > 0:
		x.lags(LogRowUnreadable, m.File, fmt.Sprintf("%s ends in %d bytes that are not a whole line", m.File, torn))
	case rest > 0 && x.stream.beyond == 0:
		x.lags(DerivedFileDamaged, m.File, fmt.Sprintf("%s has %d lines that the run did not write, from line %d on",
			m.File, rest, known+1))
	}
	return nil
}

func isRow(line []byte) bool {
	return json.Valid(line) && object.IsObject(line)
}

// judgePromotions reads promotions.jsonl, the only file of rows that does not follow from events: its rows are numbered
// from 1, and each refers to this run's result.
func (x *examined) judgePromotions() error {
	all, err := journal.ReadStream(x.dir, layout.PromotionsFile, 0)
	if err != nil {
		return err
	}
	for i, line := range all.Lines {
		e, eerr := run.ParseLine(line)
		p, perr := rundir.Promotion(line)
		switch {
		case eerr != nil || perr != nil:
			x.lags(LogRowUnreadable, "", fmt.Sprintf("line %d of %s is not a row", i+1, layout.PromotionsFile))
		case e.Seq != int64(i)+1:
			x.lags(LogRowUnreadable, "", fmt.Sprintf("line %d of %s has the number %d", i+1, layout.PromotionsFile,
				e.Seq))
		case x.result() != "" && p.Result != x.result():
			x.lags(LogRowUnreadable, "",
				fmt.Sprintf("line %d of %s is of the result %.12s, and that of the run is %.12s", i+1,
					layout.PromotionsFile, p.Result, x.result()))
		}
	}
	if len(all.Torn) > 0 {
		x.lags(LogRowUnreadable, "", fmt.Sprintf("%s ends in %d bytes that are not a whole line", layout.PromotionsFile,
			len(all.Torn)))
	}
	return nil
}

// result is the digest of the result of the run; empty: none.
func (x *examined) result() string {
	r, any := rundir.ResultOf(x.stream.want.State, x.stream.artifact, "")
	if !any {
		return ""
	}
	return r.Digest
}
