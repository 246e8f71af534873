package costs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/passbook-run/passbook/internal/accounts"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
)

// Call is one delivery of a call of an agent, as it is reserved.
type Call struct {
	ID       string `json:"call"` // with the digest of what is asked
	Delivery int    `json:"delivery"`
	Run      string `json:"run"`
	Pipeline string `json:"pipeline,omitempty"`
	Role     string `json:"role,omitempty"`
	accounts.Account
	Store  string           `json:"store,omitempty"` // URL without secrets
	Worker process.Identity `json:"worker,omitzero"` // that reserved it

	USD     float64 `json:"usd,omitempty"` // reserved
	Tokens  int64   `json:"tokens,omitempty"`
	Unknown bool    `json:"unknown,omitempty"` // what it needs was not known
}

// Kinds of lines.
const (
	kindReserved = "reserved"
	kindCost     = "cost"     // part and spend; no spend: no model was asked
	kindReleased = "released" // the delivery was never claimed on this host
	kindLost     = "ended"    // it ended without a record; a later part replaces this
	kindDamaged  = "damaged"  // lines of this day could not be read
)

// row is one line of a file.
type row struct {
	N       int        `json:"n"` // of the line, from 1: a missing line is found
	Version int        `json:"v,omitempty"`
	At      string     `json:"at"`
	Kind    string     `json:"kind"`
	Call    *Call      `json:"reserved,omitempty"`
	Of      key        `json:"of,omitzero"` // of all kinds but reserved and damaged
	Part    string     `json:"part,omitempty"`
	Spend   *run.Spend `json:"spend,omitempty"`
	Damage  *Damage    `json:"damage,omitempty"`
}

// key identifies a delivery of a call.
type key struct {
	Call     string `json:"call"`
	Delivery int    `json:"delivery"`
}

// Damage is a file of the ledger that could not be read completely.
type Damage struct {
	Day      string `json:"day"`      // in UTC
	File     string `json:"file"`     // what was found, unchanged
	Lines    int    `json:"lines"`    // that could not be read or are missing, as far as it is known
	Restored int    `json:"restored"` // calls that the stores had
	// why the stores could not be read, so that more calls may be missing; empty: they were
	Problem string `json:"problem,omitempty"`
	Open    bool   `json:"open"` // not restored yet: the next call does it
}

// Text describes the damage and what to do.
func (d Damage) Text() string {
	text := fmt.Sprintf("The ledger of %s (UTC) was damaged: %s could not be read", d.Day, run.Plural(d.Lines, "line"))
	switch {
	case d.Open:
		return text + ". These costs are incomplete. The next call of that day restores " + d.File + " from the stores."
	case d.Problem != "":
		text += ". Costs may be incomplete, because a store could not be read: " + d.Problem
	default:
		text += fmt.Sprintf(". It was restored: %s. Only costs of removed runs may be missing",
			run.Plural(d.Restored, "call"))
	}
	return text + ". The damaged file is " + d.File + "."
}

// record is a delivery with its costs.
type record struct {
	Call
	At       time.Time
	parts    []part
	released bool
	lost     bool
}

type part struct {
	name  string
	spend *run.Spend
}

func (c Call) key() key { return key{c.ID, c.Delivery} }

// open reports whether the delivery is not settled.
func (r *record) open() bool { return len(r.parts) == 0 && !r.released && !r.lost }

// spends returns what the delivery cost; a lost one has an unknown cost.
func (r *record) spends() []run.Spend {
	var out []run.Spend
	for _, p := range r.parts {
		if p.spend != nil {
			out = append(out, *p.spend)
		}
	}
	if len(r.parts) == 0 && r.lost {
		out = append(out, run.Spend{Known: run.CostUnknown})
	}
	return out
}

func (r *record) has(name string) bool {
	for _, p := range r.parts {
		if p.name == name {
			return true
		}
	}
	return false
}

// encode returns the line of a row.
func encode(r row) ([]byte, error) {
	line, err := json.Marshal(r)
	return append(line, '\n'), err
}

// errNewer is the error for a line of a later release.
var errNewer = errors.New("a later version of Passbook wrote it; use that version")

// decode reads one line.
func decode(line []byte) (row, error) {
	var r row
	if err := json.Unmarshal(line, &r); err != nil {
		return r, err
	}
	if r.Version > version {
		return r, errNewer
	}
	_, err := time.Parse(run.TimeFormat, r.At)
	valid := err == nil
	switch r.Kind {
	case kindReserved:
		valid = valid && r.Call != nil && r.Call.ID != ""
	case kindCost:
		valid = valid && r.Of.Call != "" && r.Part != ""
	case kindReleased, kindLost:
		valid = valid && r.Of.Call != ""
	case kindDamaged:
		valid = valid && r.Damage != nil
	default:
		valid = false
	}
	if !valid {
		return r, fmt.Errorf("line %d is not a line of a ledger", r.N)
	}
	return r, nil
}

// lines splits data into complete lines, and what follows the last of them.
func lines(data []byte) (all [][]byte, rest []byte) {
	for {
		line, after, found := bytes.Cut(data, []byte("\n"))
		if !found {
			return all, data
		}
		all, data = append(all, line), after
	}
}
