package codec

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

func TestEndpoint(t *testing.T) {
	c := codecOf(t, "k", map[string][]byte{"k": keyOf("a")})
	sealed, err := c.Encode([]*commonpb.Payload{{Data: []byte("open sesame")}})
	require.NoError(t, err)
	body, err := protojson.Marshal(&commonpb.Payloads{Payloads: sealed})
	require.NoError(t, err)
	const ui, host = "http://127.0.0.1:8233", "127.0.0.1:8234"
	for _, row := range []struct {
		name    string
		e       Endpoint
		host    string
		headers map[string]string
		status  int
	}{
		{
			"the Web UI", Endpoint{Origins: []string{ui}, Local: true}, host,
			map[string]string{"Origin": ui, "X-Namespace": "default"}, 200,
		},
		{"a program", Endpoint{Local: true}, "localhost:8234", nil, 200},
		{"a program by IPv6", Endpoint{Local: true}, "[::1]:8234", nil, 200},
		{
			"another page", Endpoint{Origins: []string{ui}, Local: true}, host,
			map[string]string{"Origin": "https://elsewhere.example"}, 403,
		},
		{
			"a page without an origin", Endpoint{Origins: []string{ui}, Local: true}, host,
			map[string]string{"Origin": "null"}, 403,
		},
		{"a name that was turned to the loopback", Endpoint{Local: true}, "elsewhere.example:8234", nil, 403},
		{"a host with a name", Endpoint{}, "codec.example.org", nil, 200},
		{"without the token", Endpoint{Token: "t0ken"}, host, nil, 401},
		{"with another token", Endpoint{Token: "t0ken"}, host, map[string]string{"Authorization": "Bearer token"}, 401},
		{"with the token", Endpoint{Token: "t0ken"}, host, map[string]string{"Authorization": "Bearer t0ken"}, 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.e.Codec = c
			r := httptest.NewRequest(http.MethodPost, "/decode", strings.NewReader(string(body)))
			r.Host = row.host
			r.Header.Set("Content-Type", "application/json")
			for name, value := range row.headers {
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			row.e.ServeHTTP(w, r)
			require.Equal(t, row.status, w.Code, w.Body.String())
			if row.status != 200 {
				require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
				return
			}
			require.Equal(t, row.headers["Origin"], w.Header().Get("Access-Control-Allow-Origin"))
			var got commonpb.Payloads
			require.NoError(t, protojson.Unmarshal(w.Body.Bytes(), &got))
			require.Equal(t, "open sesame", string(got.Payloads[0].Data))
		})
	}
}

func TestPreflightRequest(t *testing.T) {
	e := Endpoint{Codec: codecOf(t, "", nil), Origins: []string{"https://ui.example"}, Token: "t0ken"}
	ask := func(origin string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodOptions, "/decode", nil)
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Headers", "content-type,x-namespace")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w
	}
	w := ask("https://ui.example")
	require.Equal(t, 204, w.Code, "the token comes with the request itself")
	require.Equal(t, "https://ui.example", w.Header().Get("Access-Control-Allow-Origin"))
	require.Contains(t, w.Header().Get("Access-Control-Allow-Headers"), "X-Namespace")
	require.Equal(t, 403, ask("https://elsewhere.example").Code)
}

func TestEndpointReportsMissingKey(t *testing.T) {
	sealed, err := codecOf(t, "old",
		map[string][]byte{"old": keyOf("a")}).Encode([]*commonpb.Payload{{Data: []byte("x")}})
	require.NoError(t, err)
	body, err := protojson.Marshal(&commonpb.Payloads{Payloads: sealed})
	require.NoError(t, err)
	w := httptest.NewRecorder()
	Endpoint{
		Codec: codecOf(t, "", nil),
	}.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/decode", strings.NewReader(string(body))))
	require.Equal(t, 400, w.Code)
	require.Contains(t, w.Body.String(), `key "old"`)
}
