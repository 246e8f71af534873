package rundir

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/passbook-run/passbook/run"
)

// ReadForeign reads a run that another program recorded: what its events come to, and meta.json as it stands. Events of unknown kinds change
// nothing but the sequence number. An unreadable meta.json is ErrDamaged.
func (d Dir) ReadForeign(ctx context.Context) (run.Snapshot, map[string]json.RawMessage, error) {
	x := &examined{dir: d}
	if err := x.readMeta(); err != nil {
		return run.Snapshot{}, nil, err
	}
	if !x.meta.good() {
		return run.Snapshot{}, nil, fmt.Errorf("%s is %w: it is no JSON object", d.Path(MetaFile), ErrDamaged)
	}
	err := x.readStream(ctx)
	return x.stream.snapshot(), x.meta.object.values, err
}
