package sandbox_test

import (
	"fmt"
	"net"
	"testing"
)

func TestNoNetwork(t *testing.T) {
	const tcpRules = 4
	if requireLandlock(t) < tcpRules {
		return
	}
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := newRig(t)
	connect := fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d", l.Addr().(*net.TCPAddr).Port)
	if out, err := r.bash(t, connect); err != nil {
		t.Errorf("the network is left as it is: %v\n%s", err, out)
	}
	r.opts.NoNetwork = true
	if out, err := r.bash(t, connect); err == nil {
		t.Errorf("it connected: %s", out)
	}
}
