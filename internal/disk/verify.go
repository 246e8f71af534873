package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// StateRefusal is the required message of a failed write of the state file (requirement 002 §3.3).
const StateRefusal = "State file verification failed after write. State NOT updated."

// Verify has a file read back and compared before it is renamed.
type Verify struct {
	// Parse checks the bytes read back. Nil: they only have to be equal.
	Parse func(back []byte) error
	// Refusal starts the text of every error that left the old file in place.
	Refusal string
}

// VerifyState verifies the file from which a run continues: it must be JSON, and a refusal contains [StateRefusal].
func VerifyState() *Verify { return &Verify{Parse: parseJSON, Refusal: StateRefusal} }

// VerifyError reports that a file was not replaced. Old content is still at Path, and the temporary file is removed.
type VerifyError struct {
	Path    string
	Refusal string
	Err     error
}

func (e *VerifyError) Error() string {
	if e.Refusal == "" {
		return fmt.Sprintf("verify %s before it is replaced: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s (%s: %v)", e.Refusal, e.Path, e.Err)
}

func (e *VerifyError) Unwrap() error { return e.Err }

// refuse wraps an error of a file that stays unchanged.
func (v *Verify) refuse(path string, err error) error {
	if v == nil || err == nil {
		return err
	}
	return &VerifyError{Path: path, Refusal: v.Refusal, Err: err}
}

func (v *Verify) check(p *Pending, want []byte) error {
	if v == nil {
		return nil
	}
	back, err := p.readBack(len(want))
	if err != nil {
		return fmt.Errorf("read it back: %w", err)
	}
	if !bytes.Equal(back, want) {
		return fmt.Errorf("the content differs from the %d bytes that were written: check the disk", len(want))
	}
	if v.Parse == nil {
		return nil
	}
	return v.Parse(back)
}

func parseJSON(back []byte) error {
	if !json.Valid(back) {
		return errors.New("it is not JSON")
	}
	return nil
}
