package rundir

import (
	"bytes"
	"fmt"

	"github.com/passbook-run/passbook/internal/disk"
)

// Seal encodes a file that follows from no event, with the digest of its other bytes as its last key, by which a check
// finds that it was changed.
func Seal(v any) ([]byte, error) {
	raw, err := disk.Marshal(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(bytes.TrimSuffix(raw, []byte("\n}\n")), sealed, disk.Digest(raw)), nil
}

const sealed = ",\n  \"digest\": %q\n}\n"

// Unsealed reports whether a file has a digest of other bytes.
func Unsealed(raw []byte) bool {
	at := bytes.LastIndex(raw, []byte(",\n  \"digest\": "))
	if at < 0 {
		return false
	}
	body := append(bytes.Clone(raw[:at]), "\n}\n"...)
	return string(raw[at:]) != fmt.Sprintf(sealed, disk.Digest(body))
}
