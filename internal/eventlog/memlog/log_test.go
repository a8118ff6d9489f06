package memlog_test

import (
	"testing"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/eventlogtest"
	"github.com/roost-dev/roost/internal/eventlog/memlog"
)

func TestContract(t *testing.T) {
	eventlogtest.Run(t, func(*testing.T) eventlog.Log { return memlog.New() })
}
