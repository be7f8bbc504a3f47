// A kube-controller-manager with the three controllers whose work shows in a cluster without nodes: deletion of owned
// objects, deletion of namespaces, and tokens of service accounts. It takes the flags of the official program that the
// local deployment uses, and compiles a tenth of its packages less.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	tokens "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// The intervals and numbers of workers are the official program's defaults.
const (
	resync           = 12 * time.Hour
	namespaceResync  = 5 * time.Minute
	collectorSync    = 30 * time.Second
	collectorWorkers = 20
	namespaceWorkers = 10
	tokenWorkers     = 5
	queriesPerSecond = 20
	burst            = 30
	protobuf         = "application/vnd.kubernetes.protobuf"
)

var (
	kubeconfig  = flag.String("kubeconfig", "", "access to the API server")
	rootCA      = flag.String("root-ca-file", "", "the authority that tokens' Secrets carry")
	signingKey  = flag.String("service-account-private-key-file", "", "what signs tokens of service accounts")
	address     = flag.String("bind-address", "127.0.0.1", "where /healthz is served")
	port        = flag.String("secure-port", "10257", "where /healthz is served")
	certificate = flag.String("tls-cert-file", "", "of /healthz")
	key         = flag.String("tls-private-key-file", "", "of /healthz")
)

func main() {
	// What the official program is told, and what this one does in any case.
	for _, name := range []string{
		"controllers", "authentication-kubeconfig", "authorization-kubeconfig", "authentication-skip-lookup",
		"leader-elect", "use-service-account-credentials", "profiling",
	} {
		flag.String(name, "", "accepted")
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "kube-controller-manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = queriesPerSecond, burst
	config.ContentType = protobuf
	config.AcceptContentTypes = protobuf + ",application/json"
	root, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	// Each controller acts under its own account and bootstrap role; the manager's own may not delete objects.
	clients := clientbuilder.NewDynamicClientBuilder(rest.AnonymousClientConfig(config), root.CoreV1(), "kube-system")
	if err := waitForServer(ctx, root); err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactory(root, resync)
	if err := startTokens(ctx, root, shared); err != nil {
		return err
	}
	shared.Start(ctx.Done())
	started := make(chan struct{})
	if err := startNamespaces(ctx, clients, shared); err != nil {
		return err
	}
	metadataInformers, err := startCollector(ctx, clients, shared, started)
	if err != nil {
		return err
	}
	shared.Start(ctx.Done())
	metadataInformers.Start(ctx.Done())
	close(started)
	return serveHealth(ctx)
}

func waitForServer(ctx context.Context, root kubernetes.Interface) error {
	for {
		if _, err := root.Discovery().ServerVersion(); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func startTokens(ctx context.Context, root kubernetes.Interface, shared informers.SharedInformerFactory) error {
	private, err := keyutil.PrivateKeyFromFile(*signingKey)
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(*rootCA)
	if err != nil {
		return err
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, private)
	if err != nil {
		return err
	}
	controller, err := tokens.NewTokensController(
		klog.FromContext(ctx), shared.Core().V1().ServiceAccounts(), shared.Core().V1().Secrets(), root,
		tokens.TokensControllerOptions{TokenGenerator: generator, RootCA: authority},
	)
	if err != nil {
		return err
	}
	go controller.Run(ctx, tokenWorkers)
	return nil
}

func startNamespaces(
	ctx context.Context, clients clientbuilder.ControllerClientBuilder, shared informers.SharedInformerFactory,
) error {
	config, err := clients.Config("namespace-controller")
	if err != nil {
		return err
	}
	config.QPS *= 20
	config.Burst *= 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	discover := client.Discovery().ServerPreferredNamespacedResources
	controller := namespace.NewNamespaceController(
		ctx, client, objects, discover, shared.Core().V1().Namespaces(), namespaceResync, v1.FinalizerKubernetes,
	)
	go controller.Run(ctx, namespaceWorkers)
	return nil
}

func startCollector(
	ctx context.Context,
	clients clientbuilder.ControllerClientBuilder,
	shared informers.SharedInformerFactory,
	started <-chan struct{},
) (metadatainformer.SharedInformerFactory, error) {
	config, err := clients.Config("generic-garbage-collector")
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	config.QPS *= 2
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	metadataInformers := metadatainformer.NewSharedInformerFactory(objects, resync)
	collector, err := garbagecollector.NewGarbageCollector(
		ctx, client, objects, mapper, garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(shared, metadataInformers), started,
	)
	if err != nil {
		return nil, err
	}
	go collector.Run(ctx, collectorWorkers, collectorSync)
	go collector.Sync(ctx, client.Discovery(), collectorSync)
	return metadataInformers, nil
}

func serveHealth(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, "ok") })
	server := &http.Server{Addr: net.JoinHostPort(*address, *port), Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.ListenAndServeTLS(*certificate, *key); err != http.ErrServerClosed {
		return err
	}
	return nil
}
