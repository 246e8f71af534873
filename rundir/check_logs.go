package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/passbook-run/passbook/run"
)

// judgeGrowing compares each growing file with its mark in meta.json. They only grow, so no writer can be the cause of a line that is lost.
func (x *examined) judgeGrowing() error {
	for _, m := range x.meta.typed.Derived {
		if !slices.Contains(growing(), m.File) {
			continue
		}
		raw, err := os.ReadFile(x.dir.Path(m.File))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		switch size := int64(len(raw)); {
		case m.Size > size || m.Size > 0 && raw[m.Size-1] != '\n':
			x.findIn(DerivedFileBehind, m.File, fmt.Sprintf("%s has no line that ends at byte %d", m.File, m.Size))
		case err != nil && m.Seq > 0:
			x.lags(DerivedFileDamaged, m.File, m.File+" is missing")
		case m.Size >= 0:
			x.judgeLog(m, raw)
		}
	}
	return nil
}

// judgeLog reads one growing file: the lines that meta.json vouches for, and what stands behind them. While lines of the journal are on their way, so may
// be rows.
func (x *examined) judgeLog(m DerivedMark, raw []byte) {
	known, rest := split(raw[:m.Size], 0), split(raw[m.Size:], 0)
	switch {
	case m.Chain != "" && run.Chain("").Over(known.lines) != m.Chain:
		x.lags(DerivedFileDamaged, m.File, fmt.Sprintf("%s is not what was written: a line of its first %d was changed%s", m.File, len(known.lines), partial(m.File, known.lines)))
	case partial(m.File, known.lines) != "":
		x.lags(LogRowUnreadable, m.File, m.File+partial(m.File, known.lines)[1:])
	case len(rest.torn) > 0:
		x.lags(LogRowUnreadable, m.File, fmt.Sprintf("%s ends in %d bytes that are no whole line", m.File, len(rest.torn)))
	case len(rest.lines) > 0 && x.stream.beyond == 0:
		x.lags(DerivedFileDamaged, m.File, fmt.Sprintf("%s has %d lines that the run did not write, from line %d on", m.File, len(rest.lines), len(known.lines)+1))
	}
}

// partial names the lines that are no rows; empty: there is none.
func partial(file string, lines []string) string {
	if path.Ext(file) != ".jsonl" {
		return ""
	}
	var bad places
	for i, line := range lines {
		if !isRow([]byte(line)) {
			bad.add(int64(i) + 1)
		}
	}
	if bad.n == 0 {
		return ""
	}
	return fmt.Sprintf(", not a JSON object: %s", bad)
}

func isRow(line []byte) bool {
	return json.Valid(line) && isObject(line)
}

// judgePromotions reads promotions.jsonl, the one file of rows that no event gives: they are numbered from 1, and each is of this run's result.
func (x *examined) judgePromotions() error {
	all, err := x.dir.promotions()
	if err != nil {
		return err
	}
	for i, line := range all.lines {
		e, eerr := run.ParseEvent([]byte(line))
		p, perr := promotion(line)
		switch {
		case eerr != nil || perr != nil:
			x.lags(LogRowUnreadable, "", fmt.Sprintf("line %d of %s is no row", i+1, PromotionsFile))
		case e.Seq != int64(i)+1:
			x.lags(LogRowUnreadable, "", fmt.Sprintf("line %d of %s has the number %d", i+1, PromotionsFile, e.Seq))
		case x.result() != "" && p.Result != x.result():
			x.lags(LogRowUnreadable, "", fmt.Sprintf("line %d of %s is of the result %.12s, and that of the run is %.12s", i+1, PromotionsFile, p.Result, x.result()))
		}
	}
	if len(all.torn) > 0 {
		x.lags(LogRowUnreadable, "", fmt.Sprintf("%s ends in %d bytes that are no whole line", PromotionsFile, len(all.torn)))
	}
	return nil
}

// result is the digest of what the run has come to; empty: nothing.
func (x *examined) result() string {
	r, any := resultOf(x.stream.state(), x.stream.artifact, "")
	if !any {
		return ""
	}
	return r.Digest
}
