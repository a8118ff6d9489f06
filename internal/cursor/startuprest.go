package cursor

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire"
)

const (
	pathExchange = "/auth/exchange_user_api_key"
	pathPoll     = "/auth/poll"
)

// The person that clients see. roost knows tokens, not people.
const (
	userID    = "roost"
	userEmail = "roost@localhost"
)

// registerREST adds the routes that are plain JSON (section 9.3).
func (c *calls) registerREST(mux *http.ServeMux) {
	mux.HandleFunc("POST "+pathExchange, exchangeKey)
	mux.HandleFunc(pathPoll, pollLogin)
	mux.HandleFunc("POST /oauth/token", refreshToken)
	mux.HandleFunc("/auth/logout", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /auth/full_stripe_profile", stripeProfile)
	mux.HandleFunc("GET /auth/stripe_profile", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, "") })
	mux.HandleFunc("GET /auth/has_valid_payment_method", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, true) })
	mux.HandleFunc("GET /v1/models", c.modelItems)
	mux.HandleFunc("GET /v1/me", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]string{"apiKeyName": userID, "createdAt": time.Unix(0, 0).UTC().Format(time.RFC3339), "userEmail": userEmail})
	})
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxUnary))
		writeJSON(w, struct{}{})
	})
}

// exchangeKey trades an API key for an access token. Both are the token that the guard has checked, and
// clients do this before almost every call.
func exchangeKey(w http.ResponseWriter, r *http.Request) {
	if token, ok := ownToken(w, r); ok {
		writeJSON(w, map[string]string{"accessToken": token, "refreshToken": token})
	}
}

func pollLogin(w http.ResponseWriter, r *http.Request) {
	if token, ok := ownToken(w, r); ok {
		writeJSON(w, map[string]string{"accessToken": token, "refreshToken": token, "authId": userID})
	}
}

// ownToken returns the token that r came with. Without one, which happens on sockets that need none,
// it answers with an error: a client's login cannot work there.
func ownToken(w http.ResponseWriter, r *http.Request) (string, bool) {
	token := cursorwire.ReadHeaders(r.Header).Token
	if token == "" {
		writeUnary(w, cursorwire.JSON.UnaryType(), http.StatusUnauthorized,
			cursorwire.MarshalError(cursorwire.NotLoggedIn("send roost's token as the API key: Authorization: Bearer TOKEN")))
	}
	return token, token != ""
}

// refreshToken gives a refresh token back as the access token, which it is.
func refreshToken(w http.ResponseWriter, r *http.Request) {
	const maxForm = 64 << 10
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	var form struct {
		RefreshToken string `json:"refresh_token"`
	}
	if err == nil && json.Unmarshal(body, &form) != nil {
		if values, bad := url.ParseQuery(string(body)); bad == nil {
			form.RefreshToken = values.Get("refresh_token")
		}
	}
	if form.RefreshToken == "" {
		http.Error(w, "a refresh_token is needed", http.StatusBadRequest)
		return
	}
	writeJSON(w, map[string]any{"access_token": form.RefreshToken, "id_token": form.RefreshToken, "shouldLogout": false})
}

// stripeProfile says what is true of every client of roost: there is no plan and nothing to pay.
func stripeProfile(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]any{
		"membershipType": "free", "subscriptionStatus": "", "lastPaymentFailed": false,
		"pendingCancellationDate": "", "daysRemainingOnTrial": 0, "paymentId": "",
	})
}

// writeJSON answers with v, which is always something that JSON has a form for.
func writeJSON(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	writeUnary(w, cursorwire.JSON.UnaryType(), http.StatusOK, body)
}
