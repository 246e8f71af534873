package blobs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Version reads a plan and the digests of its files. read returns the file with that name in a run directory, which has
// that digest; see [FromStore].
func Version(ref run.PlanRef, read func(name, digest string) ([]byte, error)) (pipeline.Version, error) {
	v := pipeline.Version{Plan: &pipeline.Plan{}}
	var given rundir.Inputs
	for _, file := range []struct {
		name, digest string
		to           any
	}{{rundir.PlanFile, ref.Plan, v.Plan}, {rundir.InputsFile, ref.Inputs, &given}} {
		raw, err := read(file.name, file.digest)
		if err != nil {
			return v, err
		}
		if err := json.Unmarshal(raw, file.to); err != nil {
			return v, fmt.Errorf("read %s of the run: %w", file.name, err)
		}
	}
	v.Files = given.Digests()
	return v, nil
}

// FromStore reads files of a run by digest, for [Version].
func FromStore(ctx context.Context, s *store.Store) func(name, digest string) ([]byte, error) {
	return func(name, digest string) ([]byte, error) {
		raw, err := Get(ctx, s, digest)
		if err != nil {
			return nil, fmt.Errorf("read %s of the run: %w", name, err)
		}
		return raw, nil
	}
}
