"""Serve a gRPC method on port 50051 that returns the message it gets."""

from concurrent.futures import ThreadPoolExecutor

import grpc

methods = {"Call": grpc.unary_unary_rpc_method_handler(lambda request, context: request)}
server = grpc.server(ThreadPoolExecutor(max_workers=4))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("lab.Echo", methods),))
server.add_insecure_port("0.0.0.0:50051")
server.start()
server.wait_for_termination()
