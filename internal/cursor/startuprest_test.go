package cursor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/cursorwire"
)

func TestREST(t *testing.T) {
	h := newTestCalls(t, nil)
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string // whole JSON, or the beginning of a text
	}{
		{http.MethodPost, pathExchange, "{}", 200, `{"accessToken":"tok","refreshToken":"tok"}`},
		{http.MethodPost, pathExchange, "", 200, `{"accessToken":"tok","refreshToken":"tok"}`},
		{http.MethodGet, pathPoll + "?uuid=1&verifier=2", "", 200, `{"accessToken":"tok","authId":"roost","refreshToken":"tok"}`},
		{http.MethodPost, pathPoll, "{}", 200, `{"accessToken":"tok","authId":"roost","refreshToken":"tok"}`},
		{http.MethodPost, "/oauth/token", `{"grant_type":"refresh_token","refresh_token":"r"}`, 200, `{"access_token":"r","id_token":"r","shouldLogout":false}`},
		{http.MethodPost, "/oauth/token", `grant_type=refresh_token&refresh_token=r%2B`, 200, `{"access_token":"r+","id_token":"r+","shouldLogout":false}`},
		{http.MethodPost, "/oauth/token", `{}`, 400, "a refresh_token is needed"},
		{http.MethodPost, "/oauth/token", `{"refresh_token":"` + strings.Repeat("x", 65<<10) + `"}`, 400, "a refresh_token is needed"},
		{http.MethodPost, "/auth/logout", "", 204, ""},
		{http.MethodGet, "/auth/full_stripe_profile", "", 200, `{"daysRemainingOnTrial":0,"lastPaymentFailed":false,"membershipType":"free","paymentId":"","pendingCancellationDate":"","subscriptionStatus":""}`},
		{http.MethodGet, "/auth/stripe_profile", "", 200, `""`},
		{http.MethodGet, "/auth/has_valid_payment_method", "", 200, `true`},
		{http.MethodGet, "/v1/me", "", 200, `{"apiKeyName":"roost","createdAt":"1970-01-01T00:00:00Z","userEmail":"roost@localhost"}`},
		{http.MethodPost, "/v1/traces", `{"resourceSpans":[]}`, 200, `{}`},
		{http.MethodGet, "/v1/models", "", 200, `{"items":[{"id":"fake/test-model","displayName":"Test model"},{"id":"local/small:8b","displayName":"Small"},` +
			`{"id":"local/vendor/shared","displayName":"local/vendor/shared"},{"id":"fake/vendor/shared","displayName":"fake/vendor/shared"},` +
			`{"id":"claude-4.5-sonnet","displayName":"claude-4.5-sonnet"},{"id":"default","displayName":"Default (Test model)"}]}`},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, strings.NewReader(tc.body))
		r.Header.Set("Authorization", "Bearer tok")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tc.status || strings.TrimSpace(w.Body.String()) != tc.want {
			t.Errorf("%s %s %.60s: status %d\n got %s\nwant %s", tc.method, tc.path, tc.body, w.Code, w.Body, tc.want)
		}
	}
}

// On a socket that needs no token there is none to give out.
func TestLoginWithoutToken(t *testing.T) {
	h := newTestCalls(t, nil)
	for _, path := range TokenPaths() {
		w := askCall(t, h, cursorwire.JSON, path, []byte("{}"))
		if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), `"unauthenticated"`) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
