// Time that ns-3 takes to bring bytes over one link: printed for a grid of rates, delays, sizes and queues.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include <cstdio>
using namespace ns3;
static uint64_t got;
static double lastS, firstS;
static void Rx(Ptr<const Packet> p, const Address&) {
    if (!got) firstS = Simulator::Now().GetSeconds();
    got += p->GetSize(); lastS = Simulator::Now().GetSeconds();
}
static void Flow(const char* kind, double rate, double delay, uint64_t bytes, uint32_t queue) {
    got = 0; lastS = -1;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(kind)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 29));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 29));
    NodeContainer nodes; nodes.Create(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate))));
    link.SetDeviceAttribute("Mtu", UintegerValue(1500));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(delay)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queue)));
    NetDeviceContainer devices = link.Install(nodes);
    InternetStackHelper stack; stack.Install(nodes);
    Ipv4AddressHelper address; address.SetBase("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer ends = address.Assign(devices);
    TrafficControlHelper none; none.Uninstall(devices);
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(ends.GetAddress(1), 9));
    source.SetAttribute("MaxBytes", UintegerValue(bytes));
    source.SetAttribute("SendSize", UintegerValue(1448));
    source.Install(nodes.Get(0)).Start(Seconds(0));
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
    ApplicationContainer apps = sink.Install(nodes.Get(1)); apps.Start(Seconds(0));
    apps.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Rx));
    Simulator::Stop(Seconds(2000)); Simulator::Run(); Simulator::Destroy();
    std::printf("%s,%.0f,%g,%llu,%u,%.9f,%llu\n", kind, rate, delay, (unsigned long long)bytes, queue, lastS, (unsigned long long)got);
    std::fflush(stdout);
}
int main() {
    std::printf("congestion_control,rate_bit_s,delay_s,bytes,queue_packets,seconds,received_bytes\n");
    for (double rate : {1e6, 1e7, 1e8, 1e9})
        for (double delay : {0.0005, 0.01, 0.1})
            for (uint64_t bytes : {500ull, 14480ull, 14481ull, 100000ull, 1000000ull, 8000000ull})
                Flow("ns3::TcpNewReno", rate, delay, bytes, 1000000);
    for (const char* kind : {"ns3::TcpNewReno", "ns3::TcpCubic"})
        for (uint32_t queue : {50u, 170u, 400u})
            Flow(kind, 1e7, 0.05, 40000000ull, queue);
}
