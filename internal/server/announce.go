package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// endpointFile, in the data directory, holds the address of roost's own API while a server
// runs: "unix:PATH" or a URL.
const endpointFile = "endpoint"

// api is the address of roost's own API as clients of this machine use it.
func (e Endpoint) api() string {
	if e.HTTPSocket != "" {
		return "unix:" + e.HTTPSocket
	}
	return e.URL
}

// announce lets clients on this machine find the server.
func (s *Server) announce(dataDir string) error {
	path := filepath.Join(dataDir, endpointFile)
	if err := os.WriteFile(path, []byte(s.endpoint.api()+"\n"), 0o600); err != nil {
		return err
	}
	s.onClose(func(context.Context) error {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the address of the server: %w", err)
		}
		return nil
	})
	return nil
}
