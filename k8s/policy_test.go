package k8s

import (
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"

	"code.dny.dev/ssrf"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"crawlbatch.io/crawlbatch/formats/nat64"
	"crawlbatch.io/crawlbatch/stages/fetch/guard"
)

// policies returns the NetworkPolicies of the manifests.
func policies(t *testing.T, files ...string) []*networkingv1.NetworkPolicy {
	t.Helper()
	var out []*networkingv1.NetworkPolicy
	for _, file := range files {
		for _, o := range objects(t, file) {
			if p, ok := o.(*networkingv1.NetworkPolicy); ok {
				out = append(out, p)
			}
		}
	}
	return out
}

// reaches reports whether the policies let a pod with the given labels connect to an address
// outside the cluster. The pod may connect if one rule contains both the address and the port. A
// pod that no egress policy selects may connect to any address.
func reaches(all []*networkingv1.NetworkPolicy, labels map[string]string, protocol corev1.Protocol, to netip.AddrPort) bool {
	selected := false
	for _, p := range all {
		if !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) || !selects(p, labels) {
			continue
		}
		selected = true
		for _, rule := range p.Spec.Egress {
			if slices.ContainsFunc(rule.Ports, func(q networkingv1.NetworkPolicyPort) bool { return portIs(q, protocol, to.Port()) }) || len(rule.Ports) == 0 {
				if slices.ContainsFunc(rule.To, func(q networkingv1.NetworkPolicyPeer) bool { return holds(q.IPBlock, to.Addr()) }) || len(rule.To) == 0 {
					return true
				}
			}
		}
	}
	return !selected
}

func selects(p *networkingv1.NetworkPolicy, labels map[string]string) bool {
	for name, value := range p.Spec.PodSelector.MatchLabels {
		if labels[name] != value {
			return false
		}
	}
	return true
}

func portIs(q networkingv1.NetworkPolicyPort, protocol corev1.Protocol, port uint16) bool {
	if q.Protocol != nil && *q.Protocol != protocol || q.Protocol == nil && protocol != corev1.ProtocolTCP {
		return false
	}
	if q.Port == nil {
		return true
	}
	last := q.Port.IntVal
	if q.EndPort != nil {
		last = *q.EndPort
	}
	return int32(port) >= q.Port.IntVal && int32(port) <= last
}

func holds(block *networkingv1.IPBlock, a netip.Addr) bool {
	if block == nil || !netip.MustParsePrefix(block.CIDR).Contains(a) {
		return false
	}
	return !slices.ContainsFunc(block.Except, func(e string) bool { return netip.MustParsePrefix(e).Contains(a) })
}

// aTask and aDriver are pod labels as the executor and the CronJob set them.
var (
	aTask   = map[string]string{LabelName: "crawlbatch", LabelComponent: "task", LabelStage: "fetch"}
	aDriver = map[string]string{LabelName: "crawlbatch", LabelComponent: "driver"}
)

func TestPodsReachWhatTheyNeedAndNothingThatIsPrivate(t *testing.T) {
	own := policies(t, "manifests/networkpolicy.yaml")
	const tcp, udp = corev1.ProtocolTCP, corev1.ProtocolUDP
	for _, c := range []struct {
		what         string
		protocol     corev1.Protocol
		to           string
		task, driver bool
	}{
		{"the web", tcp, "93.184.216.34:80", true, false},
		{"the web with TLS, a public store or API server", tcp, "93.184.216.34:443", true, true},
		{"the web at an odd port", tcp, "93.184.216.34:8443", true, false},
		{"the web, IPv6", tcp, "[2606:2800:220:1:248:1893:25c8:1946]:443", true, true},
		{"a resolver of the web", udp, "8.8.8.8:53", false, false},
		{"QUIC", udp, "93.184.216.34:443", false, false},
		{"the API server", tcp, "10.96.0.1:443", false, true},
		{"the API server's own port", tcp, "10.0.0.5:6443", false, true},
		{"the API server, unique local", tcp, "[fd00::1]:6443", false, true},
		{"a pod", tcp, "10.244.1.7:8080", false, false},
		{"a kubelet", tcp, "10.0.0.5:10250", false, false},
		{"private 172.16/12", tcp, "172.31.255.254:80", false, false},
		{"beside it", tcp, "172.32.0.1:80", true, false},
		{"private 192.168/16", tcp, "192.168.1.1:80", false, false},
		{"carrier-grade NAT", tcp, "100.64.0.1:80", false, false},
		{"loopback", tcp, "127.0.0.1:443", false, false},
		{"loopback, IPv6", tcp, "[::1]:443", false, false},
		{"metadata of AWS, GCP and Azure", tcp, "169.254.169.254:80", false, false},
		{"the same with TLS", tcp, "169.254.169.254:443", false, false},
		{"credentials of EKS pods", tcp, "169.254.170.23:443", false, false},
		{"metadata of AWS, IPv6", tcp, "[fd00:ec2::254]:443", false, false},
		{"metadata of Alibaba", tcp, "100.100.100.200:443", false, false},
		{"metadata of Oracle", tcp, "192.0.0.192:443", false, false},
		{"Azure's wire server", tcp, "168.63.129.16:443", false, false},
		{"link-local, IPv6", tcp, "[fe80::1]:443", false, false},
		{"unique local", tcp, "[fc00::1]:80", false, false},
		{"the web through NAT64", tcp, "[64:ff9b::5db8:d822]:443", true, true},
		{"NAT64 of a private address", tcp, "[64:ff9b::a00:1]:80", false, false},
		{"NAT64 of the API server", tcp, "[64:ff9b::a60:1]:443", false, true},
		{"NAT64 of loopback", tcp, "[64:ff9b::7f00:1]:443", false, false},
		{"NAT64 of metadata of AWS, GCP and Azure", tcp, "[64:ff9b::a9fe:a9fe]:443", false, false},
		{"local NAT64 of a public address", tcp, "[64:ff9b:1::5db8:d822]:80", false, false},
		{"6to4 of a private address", tcp, "[2002:a00:1::]:80", false, false},
		{"multicast", tcp, "224.0.0.1:80", false, false},
	} {
		to := netip.MustParseAddrPort(c.to)
		if got := reaches(own, aTask, c.protocol, to); got != c.task {
			t.Errorf("%s (%s %s): a task reaches it: %v", c.what, c.protocol, to, got)
		}
		if got := reaches(own, aDriver, c.protocol, to); got != c.driver {
			t.Errorf("%s (%s %s): a driver reaches it: %v", c.what, c.protocol, to, got)
		}
		if reaches(own, map[string]string{"app": "another"}, c.protocol, to) {
			t.Errorf("%s (%s %s): any pod of the namespace reaches it", c.what, c.protocol, to)
		}
	}
}

// Neither the fetcher nor a policy lets pods ask a cloud for metadata or credentials, except for the address that a
// component is about.
func TestMetadataIsReachedOnlyWhereAComponentOpensIt(t *testing.T) {
	const component = "manifests/components/eks-pod-identity/networkpolicy.yaml"
	files, err := filepath.Glob("manifests/components/*/networkpolicy.yaml")
	if err != nil || !slices.Contains(files, component) {
		t.Fatal(files, err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return f == component })
	own := policies(t, append(files, "manifests/networkpolicy.yaml")...)
	opened := policies(t, "manifests/networkpolicy.yaml", component)
	strict := guard.New(false)
	metadata := guard.Metadata
	for _, a := range guard.Metadata {
		if a.Is4() {
			metadata = append(metadata, translated(a))
		}
	}
	for _, a := range metadata {
		if strict.CheckAddr(a) == nil {
			t.Errorf("%s: the guard lets it pass", a)
		}
		for _, port := range []uint16{80, 443, 6443, 8080} {
			to := netip.AddrPortFrom(a, port)
			for what, labels := range map[string]map[string]string{"a task": aTask, "a driver": aDriver} {
				if reaches(own, labels, corev1.ProtocolTCP, to) {
					t.Errorf("%s reaches %s", what, to)
				}
				agent := port == 80 && (a.String() == "169.254.170.23" || a.String() == "fd00:ec2::23")
				if got := reaches(opened, labels, corev1.ProtocolTCP, to); got != agent {
					t.Errorf("%s with the component reaches %s: %t", what, to, got)
				}
			}
		}
	}
}

// The fetcher's address guard and the NetworkPolicy must refuse the same addresses.
func TestThePolicyRefusesWhatTheGuardRefuses(t *testing.T) {
	own := policies(t, "manifests/networkpolicy.yaml")
	var prefixes []netip.Prefix
	for _, a := range guard.Metadata {
		prefixes = append(prefixes, netip.PrefixFrom(a, a.BitLen()))
	}
	prefixes = slices.Concat(prefixes, ssrf.IPv4DeniedPrefixes, ssrf.IPv6DeniedPrefixes, []netip.Prefix{ssrf.IPv6GlobalUnicast, nat64.WellKnown})
	for _, p := range own {
		for _, rule := range p.Spec.Egress {
			for _, peer := range rule.To {
				if peer.IPBlock == nil {
					continue
				}
				for _, text := range append(peer.IPBlock.Except, peer.IPBlock.CIDR) {
					prefixes = append(prefixes, netip.MustParsePrefix(text))
				}
			}
		}
	}
	var addresses []netip.Addr
	for _, p := range prefixes {
		first, last := p.Masked().Addr(), lastOf(p)
		addresses = append(addresses, first, last, first.Prev(), last.Next())
	}
	for _, a := range addresses {
		if a.Is4() {
			addresses = append(addresses, translated(a))
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		var v4 [4]byte
		var v6 [16]byte
		for i := range v6 {
			v6[i] = byte(random.Uint32())
		}
		copy(v4[:], v6[:])
		addresses = append(addresses, netip.AddrFrom4(v4), netip.AddrFrom16(v6), translated(netip.AddrFrom4(v4)))
		v6[0] = 0x20 | v6[0]&0x1f // so that this random address is global unicast
		addresses = append(addresses, netip.AddrFrom16(v6))
	}
	strict, open, shut := guard.New(false), 0, 0
	for _, a := range addresses {
		if !a.IsValid() { // the first address has no predecessor, the last address no successor
			continue
		}
		may := strict.CheckAddr(a) == nil
		if got := reaches(own, aTask, corev1.ProtocolTCP, netip.AddrPortFrom(a, 443)); got != may {
			t.Errorf("%s: the guard lets it pass: %v, the policy: %v", a, may, got)
		}
		if may {
			open++
		} else {
			shut++
		}
	}
	if open < 1000 || shut < 1000 {
		t.Errorf("%d addresses pass and %d do not: that compares little", open, shut)
	}
}

// translated returns the address of an IPv4 address under the well-known prefix of NAT64.
func translated(v4 netip.Addr) netip.Addr {
	b := nat64.WellKnown.Addr().As16()
	copy(b[12:], v4.AsSlice())
	return netip.AddrFrom16(b)
}

// lastOf returns the last address of a prefix.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 1 << (7 - bit%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func TestNothingIsReachedButMetricsByMonitoring(t *testing.T) {
	types := map[string]bool{}
	for _, p := range policies(t, "manifests/networkpolicy.yaml") {
		if len(p.Spec.Ingress) > 0 {
			t.Errorf("%s lets something in", p.Name)
		}
		if slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) && len(p.Spec.PodSelector.MatchLabels) == 0 {
			types["all pods"] = true
		}
	}
	if !types["all pods"] {
		t.Error("no policy closes every pod of the namespace")
	}
	for _, p := range policies(t, "manifests/components/monitoring/networkpolicy.yaml") {
		rule := p.Spec.Ingress[0]
		if len(p.Spec.Ingress) != 1 || len(rule.Ports) != 1 || rule.Ports[0].Port.StrVal != "metrics" ||
			len(rule.From) != 1 || rule.From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "monitoring" {
			t.Errorf("%s lets more in than monitoring to metrics: %+v", p.Name, p.Spec.Ingress)
		}
	}
}
