package config

import "log/slog"

// redacted stands for every secret in whatever is printed.
const redacted = "[redacted]"

// Secret is text that must not be printed. Every way to format, log or marshal it gives
// "[redacted]"; only Reveal gives the text. The zero Secret is empty.
//
// The text is behind a pointer because fmt cannot call methods on unexported fields: a
// struct that holds a Secret in one prints an address.
type Secret struct{ text *string }

// NewSecret returns a Secret that holds text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text. Pass it only to where it must go.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// String returns "[redacted]".
func (Secret) String() string { return redacted }

// GoString returns "[redacted]".
func (Secret) GoString() string { return redacted }

// MarshalText returns "[redacted]".
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON returns "[redacted]" as a JSON string.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue returns "[redacted]".
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
