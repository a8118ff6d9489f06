package blob

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

var _ Store = (*Memory)(nil)

// Memory is a Store for tests and simulations. Its zero value is empty and ready to use.
type Memory struct{ blobs sync.Map }

// Put implements [Store].
func (m *Memory) Put(ctx context.Context, data []byte) (string, error) {
	if err := checkPut(ctx, data); err != nil {
		return "", err
	}
	hash := Hash(data)
	m.blobs.LoadOrStore(hash, slices.Clone(data))
	return hash, nil
}

// Get implements [Store].
func (m *Memory) Get(ctx context.Context, hash string) ([]byte, error) {
	if err := checkGet(ctx, hash); err != nil {
		return nil, err
	}
	data, ok := m.blobs.Load(hash)
	if !ok {
		return nil, fmt.Errorf("%s: %w", hash, ErrNotFound)
	}
	return slices.Clone(data.([]byte)), nil
}
