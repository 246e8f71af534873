//go:build carried

package supervisor

import _ "embed"

// carried is the small program, which scripts/programs builds before.
//
//go:embed carried/passbook-call
var carried []byte
