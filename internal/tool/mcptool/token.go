package mcptool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/oauth2"
)

// tokenStore keeps a server's tokens in a file that only the user can read. The file
// belongs to a name and an address, so another address under the name gets no token.
type tokenStore struct{ path string }

func newTokenStore(dataDir string, s *Server) *tokenStore {
	sum := sha256.Sum256([]byte(s.Name + "\x00" + s.URL))
	return &tokenStore{filepath.Join(dataDir, "mcp", hex.EncodeToString(sum[:16])+".json")}
}

// grantFile is the content of the file: the client that the server registered and its token.
type grantFile struct {
	ClientID     string           `json:"client_id"`
	ClientSecret string           `json:"client_secret,omitempty"`
	AuthURL      string           `json:"auth_url"`
	TokenURL     string           `json:"token_url"`
	AuthStyle    oauth2.AuthStyle `json:"auth_style"`
	RedirectURL  string           `json:"redirect_url"`
	Scopes       []string         `json:"scopes,omitempty"`
	Token        *oauth2.Token    `json:"token"`
}

// load returns the tokens of an earlier process; nil when there are none.
func (t *tokenStore) load(client *http.Client) oauth2.TokenSource {
	data, err := os.ReadFile(t.path)
	if err != nil {
		return nil
	}
	var f grantFile
	if json.Unmarshal(data, &f) != nil || f.Token == nil || f.TokenURL == "" {
		return nil
	}
	cfg := &oauth2.Config{
		ClientID: f.ClientID, ClientSecret: f.ClientSecret, RedirectURL: f.RedirectURL, Scopes: f.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: f.AuthURL, TokenURL: f.TokenURL, AuthStyle: f.AuthStyle},
	}
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, client)
	return &savedTokens{store: t, cfg: cfg, inner: cfg.TokenSource(ctx, f.Token), last: f.Token.AccessToken}
}

// source keeps a new token and returns a source that keeps its successors.
func (t *tokenStore) source(ctx context.Context, cfg *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
	if err := t.save(cfg, token); err != nil {
		return nil, err
	}
	return &savedTokens{store: t, cfg: cfg, inner: cfg.TokenSource(ctx, token), last: token.AccessToken}, nil
}

// save replaces the file at once, so that a crash leaves the old or the new one.
func (t *tokenStore) save(cfg *oauth2.Config, token *oauth2.Token) error {
	data, err := json.Marshal(grantFile{
		ClientID: cfg.ClientID, ClientSecret: cfg.ClientSecret, RedirectURL: cfg.RedirectURL, Scopes: cfg.Scopes,
		AuthURL: cfg.Endpoint.AuthURL, TokenURL: cfg.Endpoint.TokenURL, AuthStyle: cfg.Endpoint.AuthStyle, Token: token,
	})
	if err != nil {
		return err
	}
	dir := filepath.Dir(t.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*") // made with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	// Unsynced it could be the new name of an empty file after a loss of power.
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), t.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// savedTokens keeps each token that differs from the one before.
type savedTokens struct {
	store *tokenStore
	cfg   *oauth2.Config
	inner oauth2.TokenSource

	mu   sync.Mutex
	last string
}

// Token returns a valid token, refreshed when needed. That a refreshed token cannot be kept
// does not hinder its use.
func (s *savedTokens) Token() (*oauth2.Token, error) {
	token, err := s.inner.Token()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if token.AccessToken != s.last {
		s.last = token.AccessToken
		_ = s.store.save(s.cfg, token)
	}
	return token, nil
}
