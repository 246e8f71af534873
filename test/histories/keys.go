package histories

import (
	"encoding/base64"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/codec"
)

// Keyring has the keys of all encrypted histories of tests, by the environment variable that holds them.
var Keyring = map[string]string{
	"KEY_ONE": base64.StdEncoding.EncodeToString([]byte(strings.Repeat("1", 32))),
	"KEY_TWO": base64.StdEncoding.EncodeToString([]byte(strings.Repeat("2", 32))),
}

// testCodec decodes payloads that are encrypted with these keys, and those that are not encrypted.
func testCodec() (*codec.Codec, error) {
	return codec.Load(config.Codec{Keys: []string{"one=env:KEY_ONE", "two=env:KEY_TWO"}},
		func(name string) string { return Keyring[name] })
}

func encrypted(p *commonpb.Payload) bool {
	return string(p.Metadata[converter.MetadataEncoding]) != converter.MetadataEncodingJSON
}
