package contract

// AuthNone is the identity of a message without a signature.
const AuthNone = "none"

// Signature signs a message. Both values are Base64.
type Signature struct {
	Key   string `json:"key"` // public, Ed25519
	Value string `json:"value"`
}
